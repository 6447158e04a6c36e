// The text output of `spoor scans`.
#pragma once

#include <string>
#include <vector>

#include "scanner/store/scan_record.h"

namespace spoor::cli {

// One line for each scan, in the given order. Ends with a newline.
std::string scans_text(const std::vector<scanner::ScanRecord>& scans);

}  // namespace spoor::cli
