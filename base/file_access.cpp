#include "base/file_access.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "base/file_system.h"

namespace spoor::base {
namespace {

Error failed(const char* what, const std::filesystem::path& path) {
  return system_error(errno, fmt::format("cannot {} {}", what, path.native()));
}

}  // namespace

Result<> close_to_others(const std::filesystem::path& directory) {
  constexpr mode_t others = 07;
  Result<> done;
  struct stat folder{};
  if (::stat(directory.c_str(), &folder) != 0) return errno == ENOENT ? done : failed("look at", directory);
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat status{};
    const std::filesystem::path& path = entry->path();
    if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if ((status.st_mode & others) == 0) continue;
    const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    const bool is_known = fd.get() >= 0 && ::fstat(fd.get(), &status) == 0;
    if (is_known && status.st_uid != folder.st_uid) continue;
    const bool is_closed = is_known && ::fchmod(fd.get(), status.st_mode & 07777U & ~others) == 0;
    if (!is_closed && done) done = failed("remove the access of others from", path);
  }
  if (error)
    return system_error(error.value(), fmt::format("cannot list the directory {}", directory.native()));
  return done;
}

}  // namespace spoor::base
