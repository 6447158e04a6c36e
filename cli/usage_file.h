// usage.json in node.data_dir: the totals after the last scan, for programs that read files.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/error.h"
#include "base/file_system.h"
#include "scanner/usage_database.h"

namespace spoor::cli {

// Those of the root and of the directories right below it, as the scan of this number left them. The old file
// stays where the new one can't be written.
base::Result<> write_usage_file(base::FileSystem& files, const std::filesystem::path& data_dir,
                                scanner::UsageDatabase& database, std::uint64_t scan);

}  // namespace spoor::cli
