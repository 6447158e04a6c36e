// What `spoor scans` says to people.
#pragma once

#include <string>
#include <vector>

#include "scanner/scan_record.h"

namespace spoor::cli {

// A line for each scan, in their order. Ends with a newline.
std::string scans_text(const std::vector<scanner::ScanRecord>& scans);

}  // namespace spoor::cli
