#include "base/file_system.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace spoor::base {
namespace {

Error failed(const char* what, const std::filesystem::path& path) {
  return system_error(errno, fmt::format("cannot {} {}", what, path.native()));
}

// fdatasync() makes the data and the length of the file durable, but not its time stamps. Called twice: if
// ext4 shuts down during a sync (a disk error, or on request), that sync may report success for lost data;
// the next one fails.
bool sync_data(int fd) { return ::fdatasync(fd) == 0 && ::fdatasync(fd) == 0; }

// The names of stat(1). linux/magic.h does not have all numbers.
std::string name_of_type(std::uint32_t magic) {
  constexpr std::pair<std::uint32_t, const char*> names[] = {
      {EXT4_SUPER_MAGIC, "ext4"}, {XFS_SUPER_MAGIC, "xfs"},   {BTRFS_SUPER_MAGIC, "btrfs"},
      {0x2fc12fc1, "zfs"},        {TMPFS_MAGIC, "tmpfs"},     {OVERLAYFS_SUPER_MAGIC, "overlayfs"},
      {NFS_SUPER_MAGIC, "nfs"},   {FUSE_SUPER_MAGIC, "fuse"}, {CEPH_SUPER_MAGIC, "ceph"},
  };
  const auto* const found = std::ranges::find(names, magic, &std::pair<std::uint32_t, const char*>::first);
  return found == std::end(names) ? fmt::format("{:#x}", magic) : found->second;
}

// A file that exists keeps its owner.
Descriptor open_or_create(const std::filesystem::path& path, int flags) {
  Descriptor fd(::open(path.c_str(), flags | O_CREAT | O_EXCL, file_mode));
  if (fd.get() >= 0) give_to_owner_of_folder(fd.get(), path);
  if (fd.get() >= 0 || errno != EEXIST) return fd;
  return Descriptor(::open(path.c_str(), flags | O_CREAT, file_mode));
}

class PosixOutputFile final : public OutputFile {
 public:
  PosixOutputFile(Descriptor fd, std::filesystem::path path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Result<> append(std::string_view bytes) override {
    return write_all(bytes,
                     [&](std::string_view rest) { return ::write(fd_.get(), rest.data(), rest.size()); });
  }

  Result<> write_at(std::uint64_t offset, std::string_view bytes) override {
    return write_all(bytes, [&](std::string_view rest) {
      const std::uint64_t at = offset + (bytes.size() - rest.size());
      return ::pwrite(fd_.get(), rest.data(), rest.size(), static_cast<off_t>(at));
    });
  }

  Result<> sync() override {
    if (!sync_data(fd_.get())) return failed("sync", path_);
    return {};
  }

  Result<> close() override {
    if (::close(fd_.release()) != 0) return failed("close", path_);
    return {};
  }

 private:
  template <class Write>
  Result<> write_all(std::string_view rest, Write write) {
    while (!rest.empty()) {
      const ssize_t written = write(rest);
      if (written < 0 && errno != EINTR) return failed("write", path_);
      if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
  }

  Descriptor fd_;
  std::filesystem::path path_;
};

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor above_standard(Descriptor fd) {
  if (fd.get() < 0 || fd.get() > STDERR_FILENO) return fd;
  return Descriptor(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

void give_to_owner_of_folder(int fd, const std::filesystem::path& file) {
  struct stat folder{};
  if (::geteuid() != 0) return;
  const std::filesystem::path parent = file.has_parent_path() ? file.parent_path() : ".";
  if (::stat(parent.c_str(), &folder) != 0) return;
  [[maybe_unused]] const int ignored = ::fchown(fd, folder.st_uid, folder.st_gid);
}

Result<std::string> PosixFileSystem::read(const std::filesystem::path& path, std::uint64_t bytes_max) {
  // O_NONBLOCK: a FIFO put in the place of the file must not hang the daemon.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return failed("open", path);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return failed("read", path);
  if (!S_ISREG(status.st_mode)) {
    return system_error(S_ISDIR(status.st_mode) ? EISDIR : EINVAL,
                        fmt::format("cannot read {}: not a regular file", path.native()));
  }
  if (static_cast<std::uint64_t>(status.st_size) > bytes_max) {
    return system_error(EFBIG, fmt::format("cannot read {}: {} bytes where at most {} are expected",
                                           path.native(), status.st_size, bytes_max));
  }
  std::string content(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t got = ::read(fd.get(), content.data() + done, content.size() - done);
    if (got < 0) {
      if (errno == EINTR) continue;
      return failed("read", path);
    }
    if (got == 0) break;  // truncated by another process; the checks of the formats detect it
    done += static_cast<std::size_t>(got);
  }
  content.resize(done);
  return content;
}

Result<std::unique_ptr<OutputFile>> PosixFileSystem::create(const std::filesystem::path& path) {
  // O_NONBLOCK: a FIFO put in the place of the file must not hang the daemon.
  Descriptor fd =
      above_standard(open_or_create(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status{};
  if (fd.get() < 0 || ::fstat(fd.get(), &status) != 0) return failed("create", path);
  if (!S_ISREG(status.st_mode)) {
    return system_error(EINVAL, fmt::format("cannot create {}: not a regular file", path.native()));
  }
  // The umask may have removed bits. Errors are ignored: some file systems have no modes.
  static_cast<void>(::fchmod(fd.get(), file_mode));
  return std::make_unique<PosixOutputFile>(std::move(fd), path);
}

Result<> PosixFileSystem::rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return failed("rename", from);
  return {};
}

Result<> PosixFileSystem::remove(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) != 0) return failed("remove", path);
  return {};
}

Result<> PosixFileSystem::create_directory(const std::filesystem::path& path) {
  struct stat status{};
  if (::mkdir(path.c_str(), directory_mode) == 0) {
    // The umask may have removed bits, as of a file. Keeps the special bits (setgid) inherited from the
    // parent. By descriptor, since the path may be another directory by now.
    const Descriptor made(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const bool is_known = made.get() >= 0 && ::fstat(made.get(), &status) == 0;
    if (is_known) static_cast<void>(::fchmod(made.get(), (status.st_mode & 07000U) | directory_mode));
    return {};
  }
  const int error = errno;
  if (error == EEXIST && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return {};
  return system_error(error, fmt::format("cannot create the directory {}", path.native()));
}

Result<> PosixFileSystem::remove_directory(const std::filesystem::path& path) {
  if (::rmdir(path.c_str()) != 0) return failed("remove the directory", path);
  return {};
}

Result<> PosixFileSystem::sync_directory(const std::filesystem::path& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) return failed("sync the directory", path);
  return {};
}

Result<DiskSpace> PosixFileSystem::space(const std::filesystem::path& path) {
  struct statfs found{};
  if (::statfs(path.c_str(), &found) != 0) return failed("find the free space of", path);
  const bool has_no_inode = found.f_files > 0 && found.f_ffree == 0;
  const auto block = static_cast<std::uint64_t>(found.f_frsize > 0 ? found.f_frsize : found.f_bsize);
  return DiskSpace{.bytes = found.f_blocks * block,
                   .free_bytes = has_no_inode ? 0 : found.f_bavail * block,
                   .used_bytes = (found.f_blocks - found.f_bfree) * block,
                   .type = name_of_type(static_cast<std::uint32_t>(found.f_type))};
}

Result<> PosixFileSystem::sync_file(const std::filesystem::path& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0 || !sync_data(fd.get())) return failed("sync", path);
  return {};
}

Result<std::vector<std::string>> PosixFileSystem::list_directory(const std::filesystem::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().native());
  }
  if (error) return system_error(error.value(), fmt::format("cannot list the directory {}", path.native()));
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::optional<std::string>> read_if_there(FileSystem& files, const std::filesystem::path& path,
                                                 std::uint64_t bytes_max) {
  auto bytes = files.read(path, bytes_max);
  if (bytes) return std::optional(*std::move(bytes));
  if (bytes.error().code == std::errc::no_such_file_or_directory) return std::optional<std::string>{};
  return bytes.error();
}

namespace {

Result<> write_and_rename(FileSystem& files, const std::filesystem::path& path, std::string_view bytes,
                          bool synced) {
  const std::filesystem::path aside = path.native() + ".tmp";
  const auto write = [&]() -> Result<> {
    auto file = files.create(aside);
    if (!file) return file.error();
    if (auto done = (*file)->append(bytes); !done) return done;
    if (synced) {
      if (auto done = (*file)->sync(); !done) return done;
    }
    if (auto done = (*file)->close(); !done) return done;
    return files.rename(aside, path);
  };
  auto done = write();
  if (!done) static_cast<void>(files.remove(aside));  // only the first failure is reported
  return done;
}

}  // namespace

Result<> replace_file(FileSystem& files, const std::filesystem::path& path, std::string_view bytes) {
  if (auto done = write_and_rename(files, path, bytes, true); !done) return done;
  return files.sync_directory(path.parent_path());
}

Result<> replace_file_unsynced(FileSystem& files, const std::filesystem::path& path, std::string_view bytes) {
  return write_and_rename(files, path, bytes, false);
}

Result<std::optional<FileLock>> FileLock::try_acquire(const std::filesystem::path& file) {
  Descriptor fd = open_or_create(file, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd.get() < 0) return failed("open", file);
  static_cast<void>(::fchmod(fd.get(), file_mode));  // whatever the umask
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return std::optional(FileLock(std::move(fd)));
  if (errno == EWOULDBLOCK) return std::optional<FileLock>();
  return failed("lock", file);
}

}  // namespace spoor::base
