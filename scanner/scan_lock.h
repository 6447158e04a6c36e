#pragma once

#include <filesystem>

#include "base/error.h"
#include "base/file_lock.h"

namespace spoor::scanner {

// Held by the one scan that may run on a node. Take it before the stored cursors are read: they
// belong to whoever holds it.
//
// Fails with Errc::scan_running where another process scans; does not wait.
base::Result<base::FileLock> lock_scan(const std::filesystem::path& data_dir);

}  // namespace spoor::scanner
