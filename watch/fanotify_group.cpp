#include "watch/fanotify_group.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <limits>
#include <span>
#include <string>

#include "base/printable.h"

namespace spoor::watch {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{64} << 10U;
constexpr std::uint64_t queued_events_min = std::uint64_t{128} << 10U;

constexpr std::uint64_t changes =
    FAN_CREATE | FAN_DELETE | FAN_MODIFY | FAN_CLOSE_WRITE | FAN_ATTRIB | FAN_ONDIR;

constexpr std::uint32_t cifs_magic = 0xff534d42;
constexpr std::uint32_t ceph_magic = 0x00c36400;
constexpr std::uint32_t fuse_magic = 0x65735546;

// File systems that other machines change, of which this kernel hears nothing.
bool is_shared(int directory) {
  struct statfs status{};
  if (::fstatfs(directory, &status) != 0) return false;
  constexpr std::array<std::uint32_t, 8> shared = {NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, SMB2_SUPER_MAGIC,
                                                   V9FS_MAGIC,      AFS_SUPER_MAGIC, cifs_magic,
                                                   ceph_magic,      fuse_magic};
  return std::ranges::find(shared, static_cast<std::uint32_t>(status.f_type)) != shared.end();
}

std::string advice(int error) {
  switch (error) {
    case EPERM:
      return "; it needs the capability CAP_SYS_ADMIN (see spoor-watch.service)";
    case EXDEV:
      return "; it is a subvolume of btrfs: make the top of the file system, or a path that is no subvolume, "
             "the drive";
    case EOPNOTSUPP:
    case ENODEV:
    case EINVAL:
      return "; the kernel, before Linux 5.9, or this file system does not report the names of changes (see "
             "/usr/share/doc/spoor/docs/kernel-events.md)";
    default:
      return "";
  }
}

base::Error failure(int error, const std::filesystem::path& path) {
  auto failed = base::system_error(error, fmt::format("cannot watch {}", base::printable(path.native())));
  failed.message += advice(error);
  return failed;
}

unsigned queue_flag() {
  std::ifstream file("/proc/sys/fs/fanotify/max_queued_events");
  std::uint64_t limit = 0;
  file >> limit;
  return limit >= queued_events_min ? 0 : FAN_UNLIMITED_QUEUE;
}

// Linux 5.17 reports both names of a move in one event.
int mark(int group, int directory) {
  const auto add = [&](std::uint64_t moves) {
    return ::fanotify_mark(group, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, changes | moves, directory, nullptr);
  };
  if (add(FAN_RENAME) == 0) return 0;
  return errno == EINVAL ? add(FAN_MOVED_FROM | FAN_MOVED_TO) : -1;
}

}  // namespace

base::Result<FanotifyGroup> FanotifyGroup::open(int directory, const std::filesystem::path& path) {
  if (is_shared(directory))
    return base::Error(std::make_error_code(std::errc::operation_not_supported),
                       fmt::format("cannot watch {}: it is a network or FUSE file system, and the kernel "
                                   "reports only changes that this machine makes; watch it on the server",
                                   base::printable(path.native())));
  constexpr unsigned flags =
      FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_DFID_NAME | FAN_REPORT_FID;
  base::Descriptor group(::fanotify_init(flags | queue_flag(), O_RDONLY));
  if (group.get() < 0 || mark(group.get(), directory) != 0) return failure(errno, path);
  return FanotifyGroup(std::move(group));
}

bool FanotifyGroup::is_watching() const {
  std::ifstream info(fmt::format("/proc/self/fdinfo/{}", descriptor_.get()));
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("fanotify sdev:")) return true;
  }
  return false;
}

bool FanotifyGroup::has_events() const {
  pollfd ready{descriptor_.get(), POLLIN, 0};
  return ::poll(&ready, 1, 0) > 0;
}

std::uint64_t FanotifyGroup::queue_bytes() const {
  int bytes = 0;  // the kernel counts in an int, too
  if (::ioctl(descriptor_.get(), FIONREAD, &bytes) != 0) return 0;
  return bytes < 0 ? std::numeric_limits<std::uint64_t>::max() : static_cast<std::uint64_t>(bytes);
}

base::Result<std::vector<KernelEvent>> FanotifyGroup::read() {
  buffer_.resize(buffer_bytes);
  const ssize_t size = ::read(descriptor_.get(), buffer_.data(), buffer_.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::vector<KernelEvent>();
  if (size < 0) return base::system_error(errno, "cannot read the kernel's events");
  return decode_kernel_events(std::span(buffer_).first(static_cast<std::size_t>(size)));
}

}  // namespace spoor::watch
