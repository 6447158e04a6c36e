#include "tests/watch/disk.h"

#include <fcntl.h>
#include <sys/fanotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "tests/support/process.h"
#include "tests/watch/eventually.h"

namespace spoor::watch {
namespace {

namespace fs = std::filesystem;

// mkfs.xfs refuses less than 300 MB. The files are sparse.
constexpr std::uintmax_t image_bytes = std::uintmax_t{512} << 20U;

std::vector<std::string> make_command(FileSystem type) {
  switch (type) {
    case FileSystem::xfs:
      return {"mkfs.xfs", "-q", "-f"};
    case FileSystem::btrfs:
      return {"mkfs.btrfs", "-q", "-f"};
    default:
      return {"mkfs.ext4", "-q", "-F", "-m", "0"};
  }
}

}  // namespace

std::string name_of(FileSystem type) {
  switch (type) {
    case FileSystem::ext4:
      return "ext4";
    case FileSystem::xfs:
      return "xfs";
    case FileSystem::btrfs:
      return "btrfs";
    case FileSystem::tmpfs:
      return "tmpfs";
  }
  return {};
}

Disk::Disk(FileSystem type, const fs::path& directory)
    : image_(directory / "image"), mount_(directory / "disk") {
  if (type == FileSystem::tmpfs) {
    mount_.mount_tmpfs("512m");
    return;
  }
  std::ofstream(image_).close();
  fs::resize_file(image_, image_bytes);
  auto command = make_command(type);
  command.push_back(image_.native());
  const auto made = support::run_command(command);
  if (made.code != 0) throw std::runtime_error(command.front() + ": " + made.err);
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
