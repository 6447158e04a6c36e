#include "watch/fanotify_group.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>

#include "base/byte_codec.h"
#include "base/checksum.h"
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

base::Error malformed(const char* what) {
  return {std::make_error_code(std::errc::bad_message),
          fmt::format("the kernel sent an event that this program does not understand: {}", what)};
}

// Copies a structure from the front of the bytes; the buffer may be unaligned.
template <class T>
std::optional<T> front(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

std::string to_string(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What follows the header of an information record: fsid, file handle, and a name where it has one.
std::optional<EntryName> read_record(std::span<const std::byte> record) {
  constexpr std::size_t fsid_bytes = sizeof(fanotify_event_info_fid::fsid);
  if (record.size() < fsid_bytes) return std::nullopt;
  record = record.subspan(fsid_bytes);
  const auto handle_bytes = front<std::uint32_t>(record);  // struct file_handle: handle_bytes, handle_type
  constexpr std::size_t type_offset = sizeof(std::uint32_t);
  constexpr std::size_t handle_offset = type_offset + sizeof(std::int32_t);
  if (!handle_bytes || record.size() < handle_offset || record.size() - handle_offset < *handle_bytes)
    return std::nullopt;
  EntryName entry{to_string(record.subspan(type_offset, sizeof(std::int32_t) + *handle_bytes)), {}};
  const auto name = record.subspan(handle_offset + *handle_bytes);
  const auto end = std::ranges::find(name, std::byte{0});
  if (end != name.end()) entry.name = to_string({name.begin(), end});
  return entry;
}

base::Result<KernelEvent> read_event(const fanotify_event_metadata& header,
                                     std::span<const std::byte> records) {
  KernelEvent event;
  event.mask = header.mask;
  while (!records.empty()) {
    const auto info = front<fanotify_event_info_header>(records);
    if (!info || info->len < sizeof(*info) || info->len > records.size())
      return malformed("a record's length");
    const auto record = records.subspan(sizeof(*info), info->len - sizeof(*info));
    records = records.subspan(info->len);
    const bool is_file = info->info_type == FAN_EVENT_INFO_TYPE_FID;
    const bool is_target = info->info_type == FAN_EVENT_INFO_TYPE_NEW_DFID_NAME;
    if (!is_file && !is_target && info->info_type != FAN_EVENT_INFO_TYPE_DFID_NAME &&
        info->info_type != FAN_EVENT_INFO_TYPE_OLD_DFID_NAME)
      continue;
    auto entry = read_record(record);
    if (!entry) return malformed("a record's handle");
    if (!is_file && entry->name.empty()) return malformed("a record without a name");
    if (is_file) {
      event.file = std::move(entry->directory);
    } else if (is_target) {
      event.target = std::move(entry);
    } else {
      event.entry = *std::move(entry);
    }
  }
  // One record suffices, whichever it is.
  if (event.entry.name.empty() && event.target) event.entry = *std::exchange(event.target, std::nullopt);
  if (event.entry.name.empty() && event.file.empty() && (event.mask & FAN_Q_OVERFLOW) == 0)
    return malformed("it names nothing");
  return event;
}

constexpr std::string_view magic = "SPOORWN1";
constexpr std::size_t note_bytes_max = 8192;

std::string encode(const GroupNote& note) {
  base::ByteWriter out;
  out.raw(magic);
  out.u64(note.device);
  out.u64(note.inode);
  out.u64(note.gap.id.size());
  out.raw(note.gap.id);
  out.u64(note.drive.native().size());
  out.raw(note.drive.native());
  out.u64(note.gap.reason.size());
  out.raw(note.gap.reason);
  out.u64(static_cast<std::uint64_t>(note.gap.at.time_since_epoch().count()));
  return out.take();
}

std::optional<GroupNote> decode(std::string_view bytes) {
  base::ByteReader in(bytes);
  if (in.raw(magic.size()) != magic) return std::nullopt;
  GroupNote note;
  note.device = in.u64();
  note.inode = in.u64();
  note.gap.id = in.raw(in.u64());
  note.drive = std::string(in.raw(in.u64()));
  // That of version 1.0.0 ends here.
  if (in.ok() && in.remaining() == 0) return note;
  note.gap.reason = in.raw(in.u64());
  note.gap.at = base::WallTime(std::chrono::nanoseconds(static_cast<std::int64_t>(in.u64())));
  if (!in.ok()) return std::nullopt;
  return note;
}

bool is_note(int descriptor) {
  struct stat status{};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

// Replaces the content of the note; an empty one means that events are in flight.
bool write_note(int descriptor, const std::string& bytes) {
  return descriptor >= 0 && ::ftruncate(descriptor, 0) == 0 &&
         ::pwrite(descriptor, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
}

}  // namespace

base::Result<std::vector<KernelEvent>> decode_kernel_events(std::span<const std::byte> bytes) {
  std::vector<KernelEvent> events;
  while (!bytes.empty()) {
    const auto header = front<fanotify_event_metadata>(bytes);
    if (!header || header->event_len > bytes.size() || header->metadata_len < sizeof(*header) ||
        header->event_len < header->metadata_len)
      return malformed("its length");
    if (header->vers != FANOTIFY_METADATA_VERSION) return malformed("its version");
    auto event =
        read_event(*header, bytes.subspan(header->metadata_len, header->event_len - header->metadata_len));
    if (!event) return event.error();
    events.push_back(*std::move(event));
    bytes = bytes.subspan(header->event_len);
  }
  return events;
}

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
  return FanotifyGroup(std::move(group), base::Descriptor(::memfd_create("spoor-watch", MFD_CLOEXEC)));
}

std::vector<FanotifyGroup> FanotifyGroup::take_passed() {
  char** names = nullptr;
  const int count = ::sd_listen_fds_with_names(1, &names);
  std::map<std::string, std::pair<int, int>> passed;  // the group and the note of each name
  for (int i = 0; i < count; ++i) {
    auto& [group, note] = passed.try_emplace(names[i], -1, -1).first->second;
    const int descriptor = SD_LISTEN_FDS_START + i;
    const base::Descriptor further(std::exchange(is_note(descriptor) ? note : group, descriptor));  // closed
    std::free(names[i]);  // NOLINT(cppcoreguidelines-no-malloc): allocated by libsystemd
  }
  std::free(static_cast<void*>(names));  // NOLINT(cppcoreguidelines-no-malloc): the same
  std::vector<FanotifyGroup> kept;
  kept.reserve(passed.size());
  for (const auto& [name, both] : passed)
    kept.push_back(FanotifyGroup(base::Descriptor(both.first), base::Descriptor(both.second), name));
  return kept;
}

// One name for each drive: both descriptors have it. The service manager allows few characters.
void FanotifyGroup::keep(const std::filesystem::path& drive) {
  is_in_flight_ = true;
  name_ = fmt::format("drive-{:016x}", base::checksum(drive.native()));
  const std::array descriptors = {descriptor_.get(), note_.get()};
  const int done = ::sd_pid_notify_with_fds(0, 0, fmt::format("FDSTORE=1\nFDNAME={}", name_).c_str(),
                                            descriptors.data(), descriptors.size());
  if (done < 0) spdlog::warn("cannot keep events over a restart: {}", std::strerror(-done));
}

void FanotifyGroup::discard() const {
  static_cast<void>(::sd_notify(0, fmt::format("FDSTOREREMOVE=1\nFDNAME={}", name_).c_str()));
}

std::optional<GroupNote> FanotifyGroup::settled() const {
  std::string bytes(note_bytes_max, '\0');
  const ssize_t size = ::pread(note_.get(), bytes.data(), bytes.size(), 0);
  if (descriptor_.get() < 0 || size <= 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(size));
  return decode(bytes);
}

void FanotifyGroup::set_settled(const GroupNote& note) {
  if (!std::exchange(is_in_flight_, false) && settled() == note) return;
  static_cast<void>(write_note(note_.get(), encode(note)));  // else the next start is a gap
}

bool FanotifyGroup::is_watching() const {
  std::ifstream info(fmt::format("/proc/self/fdinfo/{}", descriptor_.get()));
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("fanotify sdev:")) return true;
  }
  return false;
}

std::uint64_t FanotifyGroup::queue_bytes() const {
  int bytes = 0;  // the kernel counts in an int, too
  if (::ioctl(descriptor_.get(), FIONREAD, &bytes) != 0) return 0;
  return bytes < 0 ? std::numeric_limits<std::uint64_t>::max() : static_cast<std::uint64_t>(bytes);
}

base::Result<std::vector<KernelEvent>> FanotifyGroup::read() {
  pollfd ready{descriptor_.get(), POLLIN, 0};
  if (::poll(&ready, 1, 0) <= 0) return std::vector<KernelEvent>();
  // The last note must not count any more.
  if (!std::exchange(is_in_flight_, true) && !write_note(note_.get(), {})) discard();
  buffer_.resize(buffer_bytes);
  const ssize_t size = ::read(descriptor_.get(), buffer_.data(), buffer_.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::vector<KernelEvent>();
  if (size < 0) return base::system_error(errno, "cannot read the kernel's events");
  return decode_kernel_events(std::span(buffer_).first(static_cast<std::size_t>(size)));
}

}  // namespace spoor::watch
