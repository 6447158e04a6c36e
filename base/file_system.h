// The few file operations that Spoor's own state needs, behind an interface, so that tests can
// fail them, count them and lose what was not synced.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace spoor::base {

// Of all files and folders that Spoor makes, whatever the umask: closed to others.
inline constexpr unsigned file_mode = 0640;
inline constexpr unsigned directory_mode = 0750;

// A file open for writing. Not thread-safe. Destroying it closes it, without an error to see.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  OutputFile() = default;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  virtual Result<> append(std::string_view bytes) = 0;

  // On success everything appended survives a power cut, given that the file's directory entry
  // does (FileSystem::sync_directory).
  virtual Result<> sync() = 0;

  virtual Result<> close() = 0;
};

// Thread-safe. Every failure carries the system's error code and names the path.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // The whole file. Fails with std::errc::file_too_large, without reading, over `bytes_max`.
  virtual Result<std::string> read(const std::filesystem::path& path, std::uint64_t bytes_max) = 0;

  // Creates the file, or empties the one that is there. A symbolic link is an error.
  virtual Result<std::unique_ptr<OutputFile>> create(const std::filesystem::path& path) = 0;

  virtual Result<> rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual Result<> remove(const std::filesystem::path& path) = 0;

  // Creates one directory; its parent must exist. An existing directory is a success.
  virtual Result<> create_directory(const std::filesystem::path& path) = 0;

  // Removes one directory, which must be empty. A symbolic link is an error.
  virtual Result<> remove_directory(const std::filesystem::path& path) = 0;

  // Makes the content of a file durable that somebody else wrote, or an earlier run.
  virtual Result<> sync_file(const std::filesystem::path& path) = 0;

  // The names of what is in the directory, sorted, without "." and "..".
  virtual Result<std::vector<std::string>> list_directory(const std::filesystem::path& path) = 0;

  // Makes creations, renames and removals in the directory durable.
  virtual Result<> sync_directory(const std::filesystem::path& path) = 0;
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
};

// The whole file, or nothing where there is none.
Result<std::optional<std::string>> read_if_there(FileSystem& files, const std::filesystem::path& path,
                                                 std::uint64_t bytes_max);

// Puts `bytes` in the place of `path` so that any reader, and any crash, finds the whole old file
// or the whole new one: written aside, synced, renamed, directory synced. On failure the old file
// is untouched and the one aside is removed as far as possible.
Result<> replace_file(FileSystem& files, const std::filesystem::path& path, std::string_view bytes);

}  // namespace spoor::base
