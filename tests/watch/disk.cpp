#include "tests/watch/disk.h"

#include <fcntl.h>
#include <sys/fanotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "tests/support/process.h"
#include "tests/watch/eventually.h"

namespace spoor::watch {
namespace {

namespace fs = std::filesystem;

// mkfs.xfs refuses less than 300 MB. The files are sparse.
constexpr std::uintmax_t image_bytes = std::uintmax_t{512} << 20U;

}  // namespace

std::string name_of(FileSystem type) {
  constexpr std::array names = {"ext4", "xfs", "btrfs", "tmpfs"};
  return names.at(static_cast<std::size_t>(type));
}

Disk::Disk(FileSystem type, const fs::path& directory)
    : image_(directory / "image"), mount_(directory / "disk") {
  if (type == FileSystem::tmpfs) {
    mount_.mount_tmpfs("512m");
    return;
  }
  std::ofstream(image_).close();
  fs::resize_file(image_, image_bytes);
  const auto made = support::run_command(
      {"mkfs." + name_of(type), "-q", type == FileSystem::ext4 ? "-F" : "-f", image_.native()});
  if (made.code != 0) throw std::runtime_error(name_of(type) + ": " + made.err);
  mount();
}

std::string Disk::why_unwatchable() const {
  const int group =
      ::fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_UNLIMITED_QUEUE | FAN_REPORT_DFID_NAME, O_RDONLY);
  if (group < 0) return std::string("fanotify_init: ") + std::strerror(errno);
  std::string why;
  if (::fanotify_mark(group, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_CREATE | FAN_ONDIR, AT_FDCWD,
                      path().c_str()) != 0) {
    why = std::string("fanotify_mark: ") + std::strerror(errno);
  }
  ::close(group);
  return why;
}

bool Disk::unmount() {
  return eventually([this] {
    try {
      mount_.unmount();
      return true;
    } catch (const std::system_error& error) {
      if (error.code() != std::errc::device_or_resource_busy) throw;
      return false;
    }
  });
}

void Disk::mount() { mount_.mount_image(image_); }

}  // namespace spoor::watch
