#include "scanner/walk/directory_reader.h"

#include <dirent.h>
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
#include <memory>

#include "base/printable.h"
#include "scanner/errors.h"
#include "scanner/walk/directory_identity.h"
#include "scanner/walk/listing.h"
#include "tracker/paths/path.h"
#include "tracker/storage/drive_registry.h"

namespace spoor::scanner {
namespace {

// Some file systems keep any 64-bit second; times beyond the range of nanoseconds are clamped.
std::int64_t nanoseconds(const struct statx_timestamp& time) {
  constexpr std::int64_t seconds_max = 9'000'000'000;
  return std::clamp<std::int64_t>(time.tv_sec, -seconds_max, seconds_max) * 1'000'000'000 + time.tv_nsec;
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
  const bool has_birth = (status.stx_mask & STATX_BTIME) != 0;
  const std::int64_t birth = has_birth ? nanoseconds(status.stx_btime) : 0;
  if (birth != 0) return identity_of_birth(birth);
  const std::uint32_t generation = generation_of(descriptor);
  if (generation != 0) return identity_of_generation(generation);
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

bool has_mount(const struct statx& status) { return (status.stx_mask & STATX_MNT_ID) != 0; }

DirectoryFacts facts_of(const struct statx& status, std::uint32_t identity) {
  const std::uint64_t device = ::makedev(status.stx_dev_major, status.stx_dev_minor);
  return {.device = device,
          .mount = has_mount(status) ? status.stx_mnt_id : device,
          .inode = status.stx_ino,
          .birth = identity,
          .mtime_ns = nanoseconds(status.stx_mtime),
          .ctime_ns = nanoseconds(status.stx_ctime)};
}

// Inode numbers repeat in each subvolume; in a snapshot, so do the times of creation.
std::uint64_t inode_in(std::uint64_t subvolume, std::uint64_t number) {
  return subvolume == 0 ? number : XXH3_64bits_withSeed(&number, sizeof number, subvolume);
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
  const std::int64_t birth = (status.stx_mask & STATX_BTIME) != 0 ? nanoseconds(status.stx_btime) : 0;
  return facts_of(status, birth != 0 && !is_encrypted ? identity_of_birth(birth) : no_identity);
}

constexpr int open_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

std::uint64_t digest_of_file(std::string_view name, const struct statx& status) {
  const std::array<std::uint64_t, 3> fields = {status.stx_size,
                                               static_cast<std::uint64_t>(nanoseconds(status.stx_mtime)),
                                               static_cast<std::uint64_t>(nanoseconds(status.stx_ctime))};
  const std::uint64_t seed = XXH3_64bits(fields.data(), sizeof fields);
  return XXH3_64bits_withSeed(name.data(), name.size(), seed);
}

// Whether another mount begins at this name, in a directory on the mount `mount`: no request reaches the file
// system that is mounted, which may hang or refuse. Unknown before Linux 5.8: then it is opened.
bool is_mount_point(int parent, const std::string& name, std::uint64_t mount) {
  struct statx status{};
  constexpr int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
  return ::statx(parent, name.c_str(), flags, 0, &status) == 0 && has_mount(status) &&
         status.stx_mnt_id != mount;
}

base::Error mount_point_error() { return base::system_error(EXDEV, "another mount begins here"); }

// Sums up one directory, entry by entry.
class ListingBuilder {
 public:
  ListingBuilder(const DirectoryHandle& directory, std::string_view path,
                 const tracker::NamespaceRules& rules, const ListingParts& parts, std::int64_t now_ns)
      : descriptor_(directory.descriptor),
        now_ns_(now_ns),
        device_(directory.device),
        mount_(directory.mount),
        subvolume_(directory.subvolume),
        directory_mtime_ns_(directory.mtime_ns),
        directory_ctime_ns_(directory.ctime_ns),
        rules_(rules),
        wants_owners_(parts.owners),
        child_path_(path) {
    listing_.own.mtime_ns = directory.mtime_ns;
    listing_.ctime_ns = directory.ctime_ns;
    listing_.is_racy = is_racy(directory.mtime_ns, directory.ctime_ns);
    if (parts.files) listing_.files.emplace();
    if (!child_path_.empty()) child_path_ += '/';
    prefix_bytes_ = child_path_.size();
  }

  base::Result<> add(const dirent64& entry) {
    const std::string_view name = entry.d_name;
    if (name == "." || name == ".." || ignored(name)) return {};
    if (entry.d_type == DT_DIR) {
      add_subdirectory(name, entry.d_ino);
      return {};
    }
    return look_at(entry);
  }

  Listing finish() {
    // A directory that changes while it is listed may give an entry twice.
    listing_.subdirectories.sort();
    if (listing_.files) listing_.files->sort();
    // The signature counts each name of a file, as in databases of versions without hard links.
    listing_.signature =
        digests_.signature(named_bytes_, named_allocated_, directory_mtime_ns_, directory_ctime_ns_);
    listing_.entries = digests_.entries();
    add_linked();
    listing_.owners = encode_owners(owners_);
    return std::move(listing_);
  }

 private:
  bool ignored(std::string_view name) {
    child_path_.resize(prefix_bytes_);
    child_path_ += name;
    return rules_.ignores_child(child_path_, name);
  }

  void add_subdirectory(std::string_view name, std::uint64_t inode) {
    digests_.add_subdirectory(name);
    listing_.subdirectories.add(name, inode_in(subvolume_, inode));
  }

  base::Result<> look_at(const dirent64& entry) {
    constexpr unsigned wanted = STATX_TYPE | STATX_SIZE | STATX_BLOCKS | STATX_MTIME | STATX_CTIME |
                                STATX_NLINK | STATX_INO | STATX_UID | STATX_GID | STATX_MNT_ID;
    struct statx status{};
    if (::statx(descriptor_, entry.d_name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, wanted, &status) == 0) {
      if (S_ISDIR(status.stx_mode)) {
        add_subdirectory(entry.d_name, entry.d_ino);
      } else {
        // A file that is mounted on another one takes no space here.
        const bool is_mounted = has_mount(status) && status.stx_mnt_id != mount_;
        if (is_mounted) status.stx_size = status.stx_blocks = status.stx_nlink = 0;
        add_file(entry.d_name, status);
      }
      return {};
    }
    if (errno == ENOENT) return {};
    auto failure = base::system_error(errno, "cannot look at '" + base::printable(entry.d_name) + "' in it");
    // It may be a directory, with anything below it: then the listing itself is not known.
    if (entry.d_type == DT_UNKNOWN) return failure;
    if (!listing_.incomplete) listing_.incomplete = std::move(failure);
    return {};
  }

  void add_file(std::string_view name, const struct statx& status) {
    const std::uint64_t digest = digest_of_file(name, status);
    digests_.add(digest);
    const std::uint64_t bytes = S_ISREG(status.stx_mode) ? status.stx_size : 0;
    const std::uint64_t allocated = saturating_multiply(status.stx_blocks, 512);
    named_bytes_ = saturating_add(named_bytes_, bytes);
    named_allocated_ = saturating_add(named_allocated_, allocated);
    Totals file{.files = 1, .mtime_ns = nanoseconds(status.stx_mtime)};
    std::optional<Owner> owner;
    if (wants_owners_) owner = owner_of(status);
    if (status.stx_nlink > 1 && ::makedev(status.stx_dev_major, status.stx_dev_minor) == device_) {
      listing_.linked.push_back({inode_in(subvolume_, status.stx_ino), bytes, allocated, owner});
    } else {
      file.bytes = bytes;
      file.allocated = allocated;
    }
    if (owner) add_owned(*owner, file);
    const std::int64_t ctime_ns = nanoseconds(status.stx_ctime);
    const bool racy = is_racy(file.mtime_ns, ctime_ns);
    if (listing_.files) listing_.files->add(name, racy ? unrepeatable(digest) : digest);
    listing_.own.add(file);
    listing_.ctime_ns = std::max(listing_.ctime_ns, ctime_ns);
    listing_.is_racy = listing_.is_racy || racy;
  }

  // An mtime can be set to any time: one ahead of the clock is no time of a change.
  bool is_racy(std::int64_t mtime_ns, std::int64_t ctime_ns) const {
    return is_within_step(ctime_ns, now_ns_) || (mtime_ns <= now_ns_ && is_within_step(mtime_ns, now_ns_));
  }

  std::uint64_t unrepeatable(std::uint64_t digest) const {
    return XXH3_64bits_withSeed(&digest, sizeof digest, static_cast<std::uint64_t>(now_ns_));
  }

  void add_linked() {
    LinkedFiles& linked = listing_.linked;
    std::ranges::sort(linked, {}, &LinkedFile::inode);
    const auto others = std::ranges::unique(linked, {}, &LinkedFile::inode);
    linked.erase(others.begin(), others.end());
    for (const LinkedFile& file : linked) {
      const Totals sizes{.bytes = file.bytes, .allocated = file.allocated, .mtime_ns = listing_.own.mtime_ns};
      listing_.own.add(sizes);
      if (file.owner) add_owned(*file.owner, sizes);
    }
  }

  // Of many owners, all beyond the first ones are one.
  Owner owner_of(const struct statx& status) const {
    const Owner owner{status.stx_uid, status.stx_gid};
    return owners_.size() < owners_max || owners_.contains(owner) ? owner : other_owners;
  }

  void add_owned(const Owner& owner, const Totals& file) {
    OwnedTotals& owned = owners_[owner];
    owned.files += file.files;
    owned.bytes = saturating_add(owned.bytes, file.bytes);
    owned.allocated = saturating_add(owned.allocated, file.allocated);
  }

  const int descriptor_;
  const std::int64_t now_ns_;
  const std::uint64_t device_;
  const std::uint64_t mount_;
  const std::uint64_t subvolume_;
  const std::int64_t directory_mtime_ns_;
  const std::int64_t directory_ctime_ns_;
  const tracker::NamespaceRules& rules_;
  const bool wants_owners_;
  std::string child_path_;
  std::size_t prefix_bytes_ = 0;
  Listing listing_;
  EntryDigests digests_;
  std::uint64_t named_bytes_ = 0;  // of all names: a file with two counts twice
  std::uint64_t named_allocated_ = 0;
  Owners owners_;
};

// As the daemon reads it, but below the descriptor: the path may lead to another file system by now.
base::Result<std::optional<std::string>> read_file(const DirectoryHandle& root, const char* name,
                                                   std::size_t bytes_max) {
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
  const bool has_birth = (status.stx_mask & STATX_BTIME) != 0 && nanoseconds(status.stx_btime) != 0;
  if (!has_birth) handle.birth = identity_by_drive_file(descriptor).value_or(handle.birth);
  return handle;
}

base::Result<DirectoryHandle> PosixDirectoryReader::open_drive(const std::filesystem::path& drive) const {
  return finish_open(::open(drive.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), nullptr);
}

base::Result<DirectoryHandle> PosixDirectoryReader::open(const DirectoryHandle& parent,
                                                         const std::string& name,
                                                         std::string_view /*path*/) const {
  return open_below(parent, name);
}

base::Result<DirectoryHandle> PosixDirectoryReader::look_at_drive(const std::filesystem::path& drive) const {
  return finish_open(::open(drive.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC), nullptr);
}

base::Result<std::optional<std::string>> PosixDirectoryReader::drive_identity(
    const DirectoryHandle& root) const {
  auto content = read_file(root, tracker::drive_identity_file, tracker::drive_identity_bytes_max);
  if (!content || !*content) return content;
  if (auto identity = tracker::parse_drive_identity(**content)) return identity;
  return base::Error(std::make_error_code(std::errc::bad_message),
                     fmt::format("its identity, {}, is corrupt", tracker::drive_identity_file));
}

base::Result<std::optional<std::string>> PosixDirectoryReader::drive_stamp(
    const DirectoryHandle& root) const {
  return read_file(root, tracker::drive_stamp_file, tracker::drive_stamp_bytes_max);
}

base::Result<DirectoryHandle> PosixDirectoryReader::open_below(const DirectoryHandle& top,
                                                               std::string_view below) const {
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
    if (is_mount_point(at, component, top.mount)) return mount_point_error();
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

base::Result<Listing> PosixDirectoryReader::read(const DirectoryHandle& directory, std::string_view path,
                                                 const tracker::NamespaceRules& rules,
                                                 const ListingParts& parts,
                                                 const std::stop_token& stop) const {
  ListingBuilder builder(directory, path, rules, parts, now_ns());
  constexpr std::size_t buffer_bytes = std::size_t{16} << 10U;
  const auto buffer = std::make_unique_for_overwrite<char[]>(buffer_bytes);
  for (;;) {
    if (stop.stop_requested()) return interrupted_error();
    const ssize_t got = ::getdents64(directory.descriptor, buffer.get(), buffer_bytes);
    if (got < 0) return base::system_error(errno, "cannot list the directory");
    if (got == 0) return builder.finish();
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      const auto& entry = *reinterpret_cast<const dirent64*>(&buffer[at]);
      if (auto added = builder.add(entry); !added) return added.error();
      at += entry.d_reclen;
    }
  }
}

}  // namespace spoor::scanner
