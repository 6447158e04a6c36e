#include "base/file_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file_system.h"

namespace spoor::base {

Result<std::optional<FileLock>> FileLock::try_acquire(const std::filesystem::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, file_mode);
  if (fd < 0) return system_error(errno, fmt::format("cannot open {}", file.native()));
  FileLock lock(fd);
  static_cast<void>(::fchmod(fd, file_mode));  // whatever the umask
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return std::optional<FileLock>(std::move(lock));
  if (errno == EWOULDBLOCK) return std::optional<FileLock>();
  return system_error(errno, fmt::format("cannot lock {}", file.native()));
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace spoor::base
