// The file operations for Spoor's own state, behind an interface, so that tests can inject failures, count
// calls and lose unsynced writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace spoor::base {

// The modes of all files and directories that Spoor creates, whatever the umask: no access for others.
inline constexpr unsigned file_mode = 0640;
inline constexpr unsigned directory_mode = 0750;

struct DiskSpace {
  std::uint64_t bytes = 0;       // of the file system
  std::uint64_t free_bytes = 0;  // that a user other than root can write
  std::uint64_t used_bytes = 0;
  std::string type = {};  // of the file system, as "xfs"; its magic number if it has no name here
};

// A file open for writing. The destructor closes it and ignores errors. Not thread-safe.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  OutputFile() = default;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  virtual Result<> append(std::string_view bytes) = 0;

  // Writes at this offset of the file, over what is there and past the end. append() does not continue there.
  virtual Result<> write_at(std::uint64_t offset, std::string_view bytes) = 0;

  // On success all written bytes survive a power cut, if the file's directory entry does
  // (FileSystem::sync_directory).
  virtual Result<> sync() = 0;

  virtual Result<> close() = 0;
};

// Thread-safe. Every failure has the system's error code and names the path.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Reads the whole file. Fails with std::errc::file_too_large, without reading, if it is over `bytes_max`.
  virtual Result<std::string> read(const std::filesystem::path& path, std::uint64_t bytes_max) = 0;

  // Creates the file, or truncates an existing one. A symbolic link is an error.
  virtual Result<std::unique_ptr<OutputFile>> create(const std::filesystem::path& path) = 0;

  virtual Result<> rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual Result<> remove(const std::filesystem::path& path) = 0;

  // Creates one directory; its parent must exist. An existing directory is a success.
  virtual Result<> create_directory(const std::filesystem::path& path) = 0;

  // Removes one directory, which must be empty. A symbolic link is an error.
  virtual Result<> remove_directory(const std::filesystem::path& path) = 0;

  // Makes the content of a file durable that another process or an earlier run wrote.
  virtual Result<> sync_file(const std::filesystem::path& path) = 0;

  // The names of the entries, sorted, without "." and "..".
  virtual Result<std::vector<std::string>> list_directory(const std::filesystem::path& path) = 0;

  // Makes creations, renames and removals of entries durable.
  virtual Result<> sync_directory(const std::filesystem::path& path) = 0;

  // The space of the file system at this path. Nothing is free if no file can be created.
  virtual Result<DiskSpace> space(const std::filesystem::path& path) = 0;
};

class PosixFileSystem final : public FileSystem {
 public:
  Result<std::string> read(const std::filesystem::path& path, std::uint64_t bytes_max) override;
  Result<std::unique_ptr<OutputFile>> create(const std::filesystem::path& path) override;
  Result<> rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  Result<> remove(const std::filesystem::path& path) override;
  Result<> create_directory(const std::filesystem::path& path) override;
  Result<> remove_directory(const std::filesystem::path& path) override;
  Result<> sync_file(const std::filesystem::path& path) override;
  Result<std::vector<std::string>> list_directory(const std::filesystem::path& path) override;
  Result<> sync_directory(const std::filesystem::path& path) override;
  Result<DiskSpace> space(const std::filesystem::path& path) override;
};

// Reads the whole file; nullopt if it does not exist.
Result<std::optional<std::string>> read_if_there(FileSystem& files, const std::filesystem::path& path,
                                                 std::uint64_t bytes_max);

// Replaces the content of `path` atomically and durably: any reader, also after a crash, finds the complete
// old or the complete new file. Writes and syncs `path`.tmp, renames it, and syncs the directory. If it fails
// before the rename, the old file is unchanged and the temporary file is removed if possible.
Result<> replace_file(FileSystem& files, const std::filesystem::path& path, std::string_view bytes);

// Replaces the content of `path` without syncs, for what can be made anew: any reader finds a complete file,
// but a power cut may leave the old one, or one that is empty or damaged.
Result<> replace_file_unsynced(FileSystem& files, const std::filesystem::path& path, std::string_view bytes);

// Owns a file descriptor. Not thread-safe.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor();

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// The file of `fd` under another number, if its number is one of the three standard streams': a program that
// has closed them may still write to them. Without a number: errno is that of the failure.
Descriptor above_standard(Descriptor fd);

// Gives a file that this process, as root, has just created to the owner and group of its folder, who open it
// later: a scan by hand, and then by the service. Best effort; without effect for other users.
void give_to_owner_of_folder(int fd, const std::filesystem::path& file);

// An exclusive lock on a file (flock(2)). The destructor releases it, and so does the kernel at the end of
// the process.
//
// Not thread-safe.
class FileLock {
 public:
  // Creates the file if it does not exist. Returns nullopt, without waiting, if another process holds the
  // lock.
  static Result<std::optional<FileLock>> try_acquire(const std::filesystem::path& file);

 private:
  explicit FileLock(Descriptor fd) : fd_(std::move(fd)) {}

  Descriptor fd_;
};

}  // namespace spoor::base
