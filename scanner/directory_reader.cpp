#include "scanner/directory_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "scanner/errors.h"
#include "tracker/path.h"

namespace spoor::scanner {
namespace {

// Some file systems keep any 64-bit second; times beyond what nanoseconds can count are cut off.
std::int64_t nanoseconds(const struct statx_timestamp& time) {
  constexpr std::int64_t seconds_max = 9'000'000'000;
  return std::clamp<std::int64_t>(time.tv_sec, -seconds_max, seconds_max) * 1'000'000'000 + time.tv_nsec;
}

std::uint32_t birth_digest(const struct statx& status) {
  if ((status.stx_mask & STATX_BTIME) == 0) return 0;
  const std::int64_t birth = nanoseconds(status.stx_btime);
  return birth == 0 ? 0 : XXH32(&birth, sizeof birth, 0) | 1U;
}

constexpr unsigned wanted_of_directory = STATX_BASIC_STATS | STATX_BTIME;

void take_status(DirectoryHandle& handle, const struct statx& status) {
  handle.device = ::makedev(status.stx_dev_major, status.stx_dev_minor);
  handle.inode = status.stx_ino;
  handle.birth = birth_digest(status);
  handle.mtime_ns = nanoseconds(status.stx_mtime);
  handle.ctime_ns = nanoseconds(status.stx_ctime);
}

base::Result<DirectoryHandle> finish_open(int descriptor) {
  if (descriptor < 0) return base::system_error(errno, "cannot open the directory");
  DirectoryHandle handle(descriptor);
  struct statx status{};
  if (::statx(descriptor, "", AT_EMPTY_PATH, wanted_of_directory, &status) != 0) {
    return base::system_error(errno, "cannot look at the directory");
  }
  take_status(handle, status);
  return handle;
}

constexpr int open_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

std::uint64_t digest_of_subdirectory(std::string_view name) { return XXH3_64bits(name.data(), name.size()); }

std::uint64_t digest_of_file(std::string_view name, const struct statx& status) {
  const std::array<std::uint64_t, 3> fields = {status.stx_size,
                                               static_cast<std::uint64_t>(nanoseconds(status.stx_mtime)),
                                               static_cast<std::uint64_t>(nanoseconds(status.stx_ctime))};
  const std::uint64_t seed = XXH3_64bits(fields.data(), sizeof fields);
  return XXH3_64bits_withSeed(name.data(), name.size(), seed);
}

// Sums up one directory, entry by entry.
class ListingBuilder {
 public:
  ListingBuilder(const DirectoryHandle& directory, std::string_view path,
                 const tracker::NamespaceRules& rules, FileNames file_names)
      : descriptor_(directory.descriptor),
        directory_mtime_ns_(directory.mtime_ns),
        directory_ctime_ns_(directory.ctime_ns),
        rules_(rules),
        child_path_(path) {
    listing_.own.mtime_ns = directory.mtime_ns;
    listing_.ctime_ns = directory.ctime_ns;
    if (file_names == FileNames::wanted) listing_.files.emplace();
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
    const std::array<std::uint64_t, 6> sums = {entries_,
                                               listing_.own.bytes,
                                               listing_.own.allocated,
                                               digests_,
                                               static_cast<std::uint64_t>(directory_mtime_ns_),
                                               static_cast<std::uint64_t>(directory_ctime_ns_)};
    listing_.signature = XXH3_64bits(sums.data(), sizeof sums);
    return std::move(listing_);
  }

 private:
  bool ignored(std::string_view name) {
    child_path_.resize(prefix_bytes_);
    child_path_ += name;
    return rules_.ignores_child(child_path_, name);
  }

  void add_subdirectory(std::string_view name, std::uint64_t inode) {
    ++entries_;
    digests_ += digest_of_subdirectory(name);
    listing_.subdirectories.add(name, inode);
  }

  base::Result<> look_at(const dirent64& entry) {
    constexpr unsigned wanted = STATX_TYPE | STATX_SIZE | STATX_BLOCKS | STATX_MTIME | STATX_CTIME;
    struct statx status{};
    if (::statx(descriptor_, entry.d_name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, wanted, &status) == 0) {
      if (S_ISDIR(status.stx_mode)) {
        add_subdirectory(entry.d_name, entry.d_ino);
      } else {
        add_file(entry.d_name, status);
      }
      return {};
    }
    if (errno == ENOENT) return {};
    auto failure =
        base::system_error(errno, "cannot look at '" + tracker::printable(entry.d_name) + "' in it");
    // It may be a directory, with anything below it: then the listing itself is not known.
    if (entry.d_type == DT_UNKNOWN) return failure;
    if (!listing_.incomplete) listing_.incomplete = std::move(failure);
    return {};
  }

  void add_file(std::string_view name, const struct statx& status) {
    ++entries_;
    const std::uint64_t digest = digest_of_file(name, status);
    digests_ += digest;
    if (listing_.files) listing_.files->add(name, digest);
    ++listing_.own.files;
    if (S_ISREG(status.stx_mode)) listing_.own.bytes += status.stx_size;
    listing_.own.allocated += status.stx_blocks * 512;
    listing_.own.mtime_ns = std::max(listing_.own.mtime_ns, nanoseconds(status.stx_mtime));
    listing_.ctime_ns = std::max(listing_.ctime_ns, nanoseconds(status.stx_ctime));
  }

  const int descriptor_;
  const std::int64_t directory_mtime_ns_;
  const std::int64_t directory_ctime_ns_;
  const tracker::NamespaceRules& rules_;
  std::string child_path_;
  std::size_t prefix_bytes_ = 0;
  Listing listing_;
  std::uint64_t entries_ = 0;
  std::uint64_t digests_ = 0;
};

}  // namespace

bool is_gone(const std::error_code& code) {
  return code == std::errc::no_such_file_or_directory || code == std::errc::not_a_directory ||
         code == std::errc::too_many_symbolic_link_levels;
}

void DirectoryHandle::close() {
  if (descriptor >= 0) ::close(std::exchange(descriptor, -1));
}

DirectoryHandle DirectoryHandle::facts() const {
  DirectoryHandle facts;
  facts.device = device;
  facts.inode = inode;
  facts.birth = birth;
  facts.mtime_ns = mtime_ns;
  facts.ctime_ns = ctime_ns;
  return facts;
}

void DirectoryHandle::swap(DirectoryHandle& other) noexcept {
  std::swap(descriptor, other.descriptor);
  std::swap(device, other.device);
  std::swap(inode, other.inode);
  std::swap(birth, other.birth);
  std::swap(mtime_ns, other.mtime_ns);
  std::swap(ctime_ns, other.ctime_ns);
}

base::Result<DirectoryHandle> PosixDirectoryReader::open_drive(const std::filesystem::path& drive) const {
  return finish_open(::open(drive.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

base::Result<DirectoryHandle> PosixDirectoryReader::open(const DirectoryHandle& parent,
                                                         const std::string& name,
                                                         std::string_view /*path*/) const {
  return finish_open(::openat(parent.descriptor, name.c_str(), open_flags));
}

base::Result<DirectoryHandle> PosixDirectoryReader::look_at_drive(const std::filesystem::path& drive) const {
  struct statx status{};
  if (::statx(AT_FDCWD, drive.c_str(), 0, wanted_of_directory, &status) != 0) {
    return base::system_error(errno, "cannot look at the directory");
  }
  if (!S_ISDIR(status.stx_mode)) return base::system_error(ENOTDIR, "cannot open the directory");
  DirectoryHandle handle;
  take_status(handle, status);
  return handle;
}

base::Result<DirectoryHandle> PosixDirectoryReader::open_below(const DirectoryHandle& top,
                                                               std::string_view below) const {
  struct open_how how{};
  how.flags = static_cast<std::uint64_t>(open_flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const long descriptor =
      ::syscall(SYS_openat2, top.descriptor, std::string(below).c_str(), &how, sizeof how);
  const bool is_refused = descriptor < 0 && (errno == ENOSYS || errno == EPERM || errno == ENAMETOOLONG);
  if (!is_refused) return finish_open(static_cast<int>(descriptor));
  // An old kernel, a sandbox that does not know the call, or a path too long for one call.
  int at = ::fcntl(top.descriptor, F_DUPFD_CLOEXEC, 0);
  for (tracker::ComponentCursor name(below); at >= 0 && name.next();) {
    const DirectoryHandle parent(at);
    at = ::openat(parent.descriptor, std::string(name.component()).c_str(), open_flags);
  }
  return finish_open(at);
}

base::Result<Listing> PosixDirectoryReader::read(const DirectoryHandle& directory, std::string_view path,
                                                 const tracker::NamespaceRules& rules, FileNames file_names,
                                                 const std::stop_token& stop) const {
  ListingBuilder builder(directory, path, rules, file_names);
  constexpr std::size_t buffer_bytes = 32 * 1024;
  const auto buffer = std::make_unique_for_overwrite<char[]>(buffer_bytes);  // aligned as new is
  for (;;) {
    if (stop.stop_requested()) return interrupted_error();
    const ssize_t got = ::getdents64(directory.descriptor, buffer.get(), buffer_bytes);
    if (got < 0) return base::system_error(errno, "cannot list the directory");
    if (got == 0) return builder.finish();
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      const auto& entry = *reinterpret_cast<const dirent64*>(buffer.get() + at);
      if (auto added = builder.add(entry); !added) return added.error();
      at += entry.d_reclen;
    }
  }
}

}  // namespace spoor::scanner
