#include "daemon/durability/drive_threads.h"

#include <algorithm>

namespace spoor::daemon {

DriveThreads::DriveThreads(boost::asio::io_context& context, std::size_t drives)
    : context_(context), drives_(drives) {
  for (Drive& drive : drives_) drive.thread = std::make_unique<boost::asio::thread_pool>(1);
}

std::size_t DriveThreads::busy() const {
  return static_cast<std::size_t>(
      std::count_if(drives_.begin(), drives_.end(), [](const Drive& drive) { return drive.jobs > 0; }));
}

void DriveThreads::end_job(std::size_t drive) {
  if (--drives_[drive].jobs == 0) drives_[drive].is_late = false;
}

}  // namespace spoor::daemon
