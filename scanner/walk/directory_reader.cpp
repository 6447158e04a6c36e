#include "scanner/walk/directory_reader.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "tracker/paths/path.h"
#include "tracker/storage/drive_registry.h"

namespace spoor::scanner {

std::int64_t nanoseconds(const struct statx_timestamp& time) {
  constexpr std::int64_t seconds_max = 9'000'000'000;
  return std::clamp<std::int64_t>(time.tv_sec, -seconds_max, seconds_max) * 1'000'000'000 + time.tv_nsec;
}

bool has_mount(const struct statx& status) { return (status.stx_mask & STATX_MNT_ID) != 0; }

std::uint64_t inode_in(std::uint64_t subvolume, std::uint64_t number) {
  return subvolume == 0 ? number : XXH3_64bits_withSeed(&number, sizeof number, subvolume);
}

std::uint32_t identity_of_birth(std::int64_t birth_ns) {
  return XXH32(&birth_ns, sizeof birth_ns, 0) | identity_proof_bit;
}

std::uint32_t identity_of_generation(std::uint32_t generation) {
  return XXH32(&generation, sizeof generation, 0) | identity_proof_bit;
}

std::uint32_t identity_of_ctime(std::int64_t ctime_ns) {
  return std::max<std::uint32_t>(XXH32(&ctime_ns, sizeof ctime_ns, 0) & ~identity_proof_bit, 2);
}

bool is_another(const DirectoryRow& stored, const DirectoryHandle& found) {
  return is_proof(stored.birth) && is_proof(found.birth) && stored.birth != found.birth;
}

bool may_be_another(const DirectoryRow& stored, const DirectoryHandle& found) {
  return stored.is_read && (found.birth == no_identity || stored.birth != found.birth);
}

namespace {

// 0: the file system does not keep it.
std::int64_t birth_ns(const struct statx& status) {
  return (status.stx_mask & STATX_BTIME) != 0 ? nanoseconds(status.stx_btime) : 0;
}

// 0: the file system has no generations, or gives all inodes the same.
std::uint32_t generation_of(int descriptor) {
  std::uint64_t answer = 0;  // an int or a long, by file system
  if (::ioctl(descriptor, FS_IOC_GETVERSION, &answer) != 0) return 0;
  std::uint32_t generation = 0;
  std::memcpy(&generation, &answer, sizeof generation);
  return generation;
}

// A descriptor opened with O_PATH, by look_at_drive(), can't give the generation.
std::uint32_t identity_of(int descriptor, const struct statx& status, std::int64_t now_ns) {
  if (const std::int64_t birth = birth_ns(status); birth != 0) return identity_of_birth(birth);
  if (const std::uint32_t generation = generation_of(descriptor); generation != 0)
    return identity_of_generation(generation);
  const std::int64_t ctime = nanoseconds(status.stx_ctime);
  return is_within_step(ctime, now_ns) ? no_identity : identity_of_ctime(ctime);
}

// The root of a drive may have no proof of its own: ext4 gives it no generation. The file with the identity
// of the drive is written once, so that a copy of it is another file; its owner and rights may change.
// Nothing if there is no such file.
std::optional<std::uint32_t> identity_by_drive_file(int top) {
  struct statx status{};
  const bool is_there = ::statx(top, tracker::drive_identity_file, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
                                STATX_INO | STATX_MTIME, &status) == 0;
  if (!is_there) return std::nullopt;
  const std::array<std::uint64_t, 2> fields = {status.stx_ino,
                                               static_cast<std::uint64_t>(nanoseconds(status.stx_mtime))};
  return identity_of_birth(static_cast<std::int64_t>(XXH3_64bits(fields.data(), sizeof fields)));
}

constexpr unsigned wanted_of_directory = STATX_BASIC_STATS | STATX_BTIME;

DirectoryFacts facts_of(const struct statx& status, std::uint32_t identity) {
  const std::uint64_t device = ::makedev(status.stx_dev_major, status.stx_dev_minor);
  return {.device = device,
          .mount = has_mount(status) ? status.stx_mnt_id : device,
          .inode = status.stx_ino,
          .birth = identity,
          .mtime_ns = nanoseconds(status.stx_mtime),
          .ctime_ns = nanoseconds(status.stx_ctime)};
}

// A subvolume has another device number, but no mount of its own.
bool is_other_subvolume(const DirectoryFacts& facts, const DirectoryFacts& above) {
  return facts.mount == above.mount && facts.device != above.device;
}

// The device number of a subvolume changes when it is mounted again; its file system id does not.
base::Result<> add_subvolume(DirectoryFacts& facts, const DirectoryFacts& above, int descriptor) {
  facts.subvolume = above.subvolume;
  if (is_other_subvolume(facts, above)) {
    struct statfs found{};
    if (::fstatfs(descriptor, &found) != 0) return base::system_error(errno, "cannot look at the directory");
    facts.subvolume = XXH3_64bits(&found.f_fsid, sizeof found.f_fsid);
  }
  facts.inode = inode_in(facts.subvolume, facts.inode);
  return {};
}

// What a path gives of the identity: that of an encrypted directory proves nothing, as all its names change
// when its key is added or removed, but not its times.
base::Result<DirectoryFacts> facts_at(int at, const std::string& below, int flags) {
  struct statx status{};
  if (::statx(at, below.c_str(), flags, wanted_of_directory, &status) != 0) {
    return base::system_error(errno, "cannot look at the directory");
  }
  if (!S_ISDIR(status.stx_mode)) return base::system_error(ENOTDIR, "cannot look at the directory");
  const bool is_encrypted = (status.stx_attributes & STATX_ATTR_ENCRYPTED) != 0;
  const std::int64_t birth = birth_ns(status);
  return facts_of(status, birth != 0 && !is_encrypted ? identity_of_birth(birth) : no_identity);
}

constexpr int open_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Whether another mount begins at this name, in a directory on the mount `mount`: no request reaches the file
// system that is mounted, which may hang or refuse. Unknown before Linux 5.8: then it is opened.
bool is_mount_point(int parent, const std::string& name, std::uint64_t mount) {
  struct statx status{};
  constexpr int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
  return ::statx(parent, name.c_str(), flags, 0, &status) == 0 && has_mount(status) &&
         status.stx_mnt_id != mount;
}

}  // namespace

bool is_gone(const std::error_code& code) {
  return code == std::errc::no_such_file_or_directory || code == std::errc::not_a_directory ||
         code == std::errc::too_many_symbolic_link_levels;
}

void DirectoryHandle::close() {
  if (descriptor >= 0) ::close(std::exchange(descriptor, -1));
}

base::Result<DirectoryHandle> PosixDirectoryReader::finish_open(int descriptor,
                                                                const DirectoryFacts* above) const {
  if (descriptor < 0) return base::system_error(errno, "cannot open the directory");
  DirectoryHandle handle(descriptor);
  const std::int64_t now = now_ns();
  struct statx status{};
  if (::statx(descriptor, "", AT_EMPTY_PATH, wanted_of_directory, &status) != 0) {
    return base::system_error(errno, "cannot look at the directory");
  }
  handle.take_facts(facts_of(status, identity_of(descriptor, status, now)));
  if (above != nullptr) {
    if (auto added = add_subvolume(handle, *above, descriptor); !added) return added.error();
    return handle;
  }
  if (birth_ns(status) == 0) handle.birth = identity_by_drive_file(descriptor).value_or(handle.birth);
  return handle;
}

base::Result<DirectoryHandle> PosixDirectoryReader::open_drive(const std::filesystem::path& drive) const {
  return finish_open(::open(drive.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), nullptr);
}

base::Result<DirectoryHandle> PosixDirectoryReader::look_at_drive(const std::filesystem::path& drive) const {
  return finish_open(::open(drive.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC), nullptr);
}

// As the daemon reads it, but below the descriptor: the path may lead to another file system by now.
base::Result<std::optional<std::string>> PosixDirectoryReader::read_file(const DirectoryHandle& root,
                                                                         const char* name,
                                                                         std::size_t bytes_max) const {
  const DirectoryHandle file(::openat(root.descriptor, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.descriptor < 0 && is_gone(std::error_code(errno, std::system_category()))) {
    return std::optional<std::string>();
  }
  std::string content(bytes_max, '\0');
  const ssize_t got = file.descriptor < 0 ? -1 : ::pread(file.descriptor, content.data(), content.size(), 0);
  if (got < 0) return base::system_error(errno, fmt::format("its file {} cannot be read", name));
  content.resize(static_cast<std::size_t>(got));
  return std::optional(std::move(content));
}

base::Result<DirectoryHandle> PosixDirectoryReader::open(const DirectoryHandle& top, std::string_view below,
                                                         std::string_view /*path*/) const {
  struct open_how how{};
  how.flags = static_cast<std::uint64_t>(open_flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  const long descriptor =
      ::syscall(SYS_openat2, top.descriptor, std::string(below).c_str(), &how, sizeof how);
  const bool is_refused = descriptor < 0 && (errno == ENOSYS || errno == EPERM || errno == ENAMETOOLONG);
  if (!is_refused) return finish_open(static_cast<int>(descriptor), &top);
  // An old kernel, a sandbox that refuses the call, or a path too long for one call.
  int at = ::fcntl(top.descriptor, F_DUPFD_CLOEXEC, 0);
  for (tracker::ComponentCursor name(below); at >= 0 && name.next();) {
    const DirectoryHandle parent(at);
    const std::string component(name.component());
    if (is_mount_point(at, component, top.mount))
      return base::system_error(EXDEV, "another mount begins here");
    at = ::openat(at, component.c_str(), open_flags);
  }
  return finish_open(at, &top);
}

// Not those of a network, whose times are of another clock and may be cached; nor FUSE, overlayfs and FAT,
// which keep such times in part or not at all; nor btrfs before Linux 5.19: a directory in which a subvolume
// is made keeps its times there.
bool PosixDirectoryReader::changes_times_with_entries(const DirectoryHandle& directory) const {
  struct statfs found{};
  if (::fstatfs(directory.descriptor, &found) != 0) return false;
  struct utsname kernel{};
  if (found.f_type == BTRFS_SUPER_MAGIC && ::uname(&kernel) == 0)
    return ::strverscmp(kernel.release, "5.19") >= 0;
  constexpr std::array<std::uint32_t, 3> types = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, TMPFS_MAGIC};
  return std::ranges::find(types, static_cast<std::uint32_t>(found.f_type)) != types.end();
}

base::Result<DirectoryFacts> PosixDirectoryReader::look_at(const DirectoryHandle& top, std::string_view below,
                                                           std::string_view /*path*/) const {
  const std::string name(below);
  auto facts = facts_at(top.descriptor, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC);
  DirectoryHandle opened;
  if (facts && is_other_subvolume(*facts, top)) {
    // All facts are of one directory, even if the path leads to another one by now.
    opened.descriptor = ::openat(top.descriptor, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    facts = facts_at(opened.descriptor, "", AT_EMPTY_PATH);
  }
  if (!facts) return facts;
  if (auto added = add_subvolume(*facts, top, opened.descriptor); !added) return added.error();
  return facts;
}

}  // namespace spoor::scanner
