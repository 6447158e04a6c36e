// What the database says, as JSON: the same for `spoor` and for the API (docs/http-api.md).
//
// Names may hold bytes that are not UTF-8: dump with error_handler_t::replace.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/error.h"
#include "scanner/change_feed.h"
#include "scanner/scan_record.h"
#include "scanner/usage_query.h"

namespace spoor::scanner {

nlohmann::ordered_json usage_json(const Usage& usage);

// An array: an object for each change of the directory or file, which are two where another one took its
// place.
nlohmann::ordered_json changes_json(const FeedEntry& entry);

// In their order.
nlohmann::ordered_json scans_json(const std::vector<ScanRecord>& scans);

// The same back from JSON, as far as it holds it: times to the second, the end of a scan by its duration,
// `complete` for what is known of a directory. Anything else is an error, as are directories that are nested
// deeper than a daemon's answer.
inline constexpr std::uint64_t usage_depth_max = 16;
base::Result<Usage> usage_from_json(const nlohmann::ordered_json& json);
base::Result<std::vector<ScanRecord>> scans_from_json(const nlohmann::ordered_json& json);

}  // namespace spoor::scanner
