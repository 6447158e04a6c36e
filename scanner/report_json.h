// Converts the results of scans to JSON, the same for `spoor` and for the API (docs/http-api.md).
//
// Names may contain bytes that are not UTF-8: dump with error_handler_t::replace.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "scanner/feed/change_feed.h"
#include "scanner/store/scan_record.h"
#include "scanner/usage/usage_query.h"

namespace spoor::scanner {

nlohmann::ordered_json usage_json(const Usage& usage);

// One directory of it, without those below.
nlohmann::ordered_json usage_entry_json(const Usage& usage, const UsageEntry& entry);

// The name of a change in JSON: "grown", "new", "deleted", "recreated" or "renamed".
std::string_view name_of(UsageGrowth::Change change);

// The points, oldest first.
nlohmann::ordered_json history_json(std::string_view path, const UsageHistory& history);

// An array with an object for each change of the directory or file: two if it was replaced.
nlohmann::ordered_json changes_json(const FeedEntry& entry);

// In the given order.
nlohmann::ordered_json scans_json(const std::vector<ScanRecord>& scans);

// The reverse, as far as the JSON contains it: times have the precision of a second, the end of a scan is
// computed from its duration, and Usage::is_complete() is the entry's `complete`. Other JSON is an error
// (std::errc::bad_message), and so are directories nested deeper, or more owners, than a daemon returns.
inline constexpr std::uint64_t usage_depth_max = 16;
inline constexpr std::uint64_t usage_owners_max = 10'000;
base::Result<Usage> usage_from_json(const nlohmann::ordered_json& json);
base::Result<std::vector<ScanRecord>> scans_from_json(const nlohmann::ordered_json& json);

}  // namespace spoor::scanner
