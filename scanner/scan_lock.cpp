#include "scanner/scan_lock.h"

#include <fmt/core.h>

#include <utility>

#include "scanner/errors.h"

namespace spoor::scanner {

base::Result<base::FileLock> lock_scan(const std::filesystem::path& data_dir) {
  const std::filesystem::path file = data_dir / "scan.lock";
  auto lock = base::FileLock::try_acquire(file);
  if (!lock) return base::wrap("cannot start a scan", lock.error());
  if (!lock->has_value()) {
    return base::Error(
        Errc::scan_running,
        fmt::format("another scan of this node is running: it holds {}; wait until it ends", file.native()));
  }
  return std::move(**lock);
}

}  // namespace spoor::scanner
