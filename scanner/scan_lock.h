#pragma once

#include <filesystem>

#include "base/error.h"
#include "base/file_lock.h"

namespace spoor::scanner {

// Acquires the lock of the only scan that may run on a node. Acquire it before reading the stored cursors:
// only the holder may use them.
//
// Fails with Errc::scan_running if another process holds it; does not wait.
base::Result<base::FileLock> lock_scan(const std::filesystem::path& data_dir);

}  // namespace spoor::scanner
