// A scan commits what it walked every few seconds (scanner/scan.h). What is stored beside that, for the scan
// that resumes it: two settings of the database.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scanner/store/scan_record.h"
#include "scanner/walk/scan_input.h"
#include "scanner/walk/walk_context.h"

namespace spoor::scanner {

// unfinished_input_key, written once: the options that another scan must have to resume it, and its input,
// with these marks.
std::string encode_unfinished_input(const ScanOptions& options, const ScanInput& input,
                                    const tracker::MarkSet& marks);

// Nothing if the bytes are not valid, or of other options.
std::optional<ScanInput> decode_unfinished_input(std::string_view bytes, const ScanOptions& options);

// unfinished_key, written with each commit and removed by the last one: how far it came. If no scan resumes
// it, the next one still has to know some of that.
struct UnfinishedScan {
  std::string reason = {};  // why everything is walked; empty if the marks decide
  bool resets_feed = false;
  WalkFigures figures = {};
  std::vector<std::string> missed_paths = {};  // of AuditReport
  DrivePlaces places = {};

  std::string encode() const;
  // Nothing if the bytes are not valid.
  static std::optional<UnfinishedScan> decode(std::string_view bytes);

  friend bool operator==(const UnfinishedScan&, const UnfinishedScan&) = default;
};

}  // namespace spoor::scanner
