// usage.json in node.data_dir: the totals after the last scan, for programs that read files.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/error.h"
#include "base/file_system.h"
#include "scanner/store/usage_database.h"

namespace spoor::cli {

// Writes the totals of the root and of its direct children after the scan of this number. If the new file
// cannot be written, the old one stays.
base::Result<> write_usage_file(base::FileSystem& files, const std::filesystem::path& data_dir,
                                scanner::UsageDatabase& database, std::uint64_t scan);

}  // namespace spoor::cli
