#include "watch/drive_root.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "tracker/paths/path.h"

namespace spoor::watch {
namespace {

// The path of an open file, as the kernel shows it; ENAMETOOLONG if it does not fit in PATH_MAX.
base::Result<std::string> path_of(int descriptor) {
  std::array<char, PATH_MAX> path{};
  const ssize_t size =
      ::readlink(fmt::format("/proc/self/fd/{}", descriptor).c_str(), path.data(), path.size());
  const int error = size < 0 ? errno : ENAMETOOLONG;
  if (size < 0 || static_cast<std::size_t>(size) == path.size())
    return base::system_error(error, "cannot read the path of a directory in /proc/self/fd");
  return std::string(path.data(), static_cast<std::size_t>(size));
}

// `path` below `top`; nullopt if it is not below.
std::optional<std::string> below(const std::string& path, const std::string& top) {
  if (path == top) return std::string();
  const std::string prefix = top.ends_with('/') ? top : top + '/';
  if (!path.starts_with(prefix)) return std::nullopt;
  return path.substr(prefix.size());
}

// The structure that the system call takes: length, type and bytes of the handle.
std::vector<char> to_file_handle(const DirectoryHandle& handle) {
  std::vector<char> bytes(sizeof(std::uint32_t) + handle.size());
  const auto size = static_cast<std::uint32_t>(handle.size() - sizeof(std::int32_t));
  std::memcpy(bytes.data(), &size, sizeof(size));
  std::memcpy(bytes.data() + sizeof(size), handle.data(), handle.size());
  return bytes;
}

base::Descriptor open_handle(int drive, const DirectoryHandle& handle) {
  constexpr int attempts_max = 32;
  std::vector<char> file_handle = to_file_handle(handle);
  for (int attempt = 1;; ++attempt) {
    const int directory = ::open_by_handle_at(
        drive, reinterpret_cast<struct file_handle*>(file_handle.data()), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0 || errno != ENOMEM || attempt == attempts_max) return base::Descriptor(directory);
    // ext4 fails so, too, for a removed directory while its inode is being given to a new one.
    static_cast<void>(::poll(nullptr, 0, 1));
  }
}

base::Result<base::Descriptor> open_ancestor(int directory, std::size_t levels) {
  constexpr std::size_t levels_at_once = 1000;  // the path of one call has a limit, too
  std::string up;
  for (std::size_t level = std::min(levels, levels_at_once); level > 0; --level) up += "../";
  base::Descriptor ancestor(::openat(directory, up.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (ancestor.get() < 0) return base::system_error(errno, "cannot open the parent of a directory");
  if (levels <= levels_at_once) return ancestor;
  return open_ancestor(ancestor.get(), levels - levels_at_once);
}

// The path of a directory, or of its nearest ancestor that has one: it may lie deeper than any path can name.
// Any user can nest thousands of directories, so the ancestor is found by bisection.
base::Result<Place> place_of(int directory) {
  auto path = path_of(directory);
  if (path) return Place{*std::move(path)};
  Place place{.is_only_ancestor = true};
  std::optional<base::Descriptor> start;  // the highest directory that is known to have none
  bool is_found = false;
  for (std::size_t levels = 1; levels > 0; levels = is_found ? levels / 2 : levels * 2) {
    if (!path && path.error().code != std::errc::filename_too_long) return path.error();
    auto ancestor = open_ancestor(start ? start->get() : directory, levels);
    if (!ancestor) return ancestor.error();
    path = path_of(ancestor->get());
    is_found = is_found || path;
    if (path) {
      place.path = *path;
    } else {
      start.emplace(*std::move(ancestor));
    }
  }
  return place;
}

}  // namespace

base::Result<> DriveRoot::enter() {
  base::Descriptor root(::open(drive_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status{};
  if (root.get() < 0 || ::fstat(root.get(), &status) != 0)
    return base::system_error(errno, fmt::format("cannot open {}", base::printable(drive_.native())));
  auto path = path_of(root.get());
  if (!path) return path.error();
  real_path_ = *std::move(path);
  device_ = status.st_dev;
  inode_ = status.st_ino;
  root_.emplace(std::move(root));
  return {};
}

base::Result<std::optional<Place>> DriveRoot::resolve(const DirectoryHandle& handle) const {
  base::Descriptor directory = open_handle(root_->get(), handle);
  if (directory.get() < 0 && (errno == ESTALE || errno == ENOENT || errno == ENOTDIR))
    return std::optional<Place>();
  struct stat status{};
  if (directory.get() < 0 || ::fstat(directory.get(), &status) != 0)
    return base::system_error(errno, "cannot open the directory of an event");
  if (status.st_nlink == 0) return std::optional<Place>();  // removed, but still open
  const auto place = place_of(directory.get());
  if (!place) return place.error();
  if (auto path = below(place->path, real_path_)) {
    // The kernel appends " (deleted)" to the path of a directory that is gone.
    const bool is_gone = path->size() - (path->rfind('/') + 1) > tracker::component_bytes_max;
    if (is_gone) return std::optional<Place>();
    return std::optional(Place{*std::move(path), place->is_only_ancestor});
  }
  const auto top = path_of(root_->get());
  if (top && *top == real_path_) return std::optional<Place>();
  return base::Error(std::make_error_code(std::errc::resource_unavailable_try_again),
                     "a directory above the drive was renamed");
}

base::Result<> DriveRoot::check_handles() const {
  alignas(file_handle) std::array<char, sizeof(file_handle) + MAX_HANDLE_SZ> bytes{};
  auto* const handle = reinterpret_cast<file_handle*>(bytes.data());
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount_id = 0;
  if (::name_to_handle_at(root_->get(), "", handle, &mount_id, AT_EMPTY_PATH) != 0)
    return base::system_error(errno, fmt::format("{} has no handle", base::printable(drive_.native())));
  const DirectoryHandle own(bytes.data() + sizeof(handle->handle_bytes),
                            sizeof(handle->handle_type) + handle->handle_bytes);
  const auto resolved = resolve(own);
  if (resolved && *resolved) return {};
  if (resolved)
    return base::Error(std::make_error_code(std::errc::not_supported),
                       fmt::format("the handle of {} does not lead to it", base::printable(drive_.native())));
  base::Error failed = resolved.error();
  if (failed.code == std::errc::operation_not_permitted)
    failed.message += "; it needs the capability CAP_DAC_READ_SEARCH (see spoor-watch.service)";
  return failed;
}

}  // namespace spoor::watch
