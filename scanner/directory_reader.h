// Reading directories, one at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "scanner/directory_row.h"
#include "scanner/files.h"
#include "scanner/subdirectories.h"
#include "tracker/namespace_rules.h"

namespace spoor::scanner {

// An open directory, and what its own inode says. Moving leaves the source closed. Not thread-safe.
struct DirectoryHandle {
  DirectoryHandle() = default;
  explicit DirectoryHandle(int open_descriptor) : descriptor(open_descriptor) {}
  DirectoryHandle(DirectoryHandle&& other) noexcept { swap(other); }
  DirectoryHandle& operator=(DirectoryHandle&& other) noexcept {
    close();
    swap(other);
    return *this;
  }
  DirectoryHandle(const DirectoryHandle&) = delete;
  DirectoryHandle& operator=(const DirectoryHandle&) = delete;
  ~DirectoryHandle() { close(); }

  void close();

  // A closed one of the same directory.
  DirectoryHandle facts() const;

  int descriptor = -1;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint32_t birth = 0;  // a digest of the time of creation; 0 where there is none
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;

 private:
  void swap(DirectoryHandle& other) noexcept;
};

// The entries of a directory that the rules do not ignore.
struct Listing {
  Totals own;
  // Of the names of all entries, and of the size, mtime and ctime of those that are no directories:
  // differs whenever one of them does. The order of the listing does not count.
  std::uint64_t signature = 0;
  Subdirectories subdirectories;  // sorted
  std::optional<Files> files;     // sorted; nothing where they were not asked for
  // When the directory or a file in it was changed last, its attributes included.
  std::int64_t ctime_ns = 0;
  // The first failure to look at a file: the totals and the signature are without it.
  std::optional<base::Error> incomplete;
};

// Whether a listing has the names of the files, and not only their sums.
enum class FileNames { unwanted, wanted };

// Whether a failure says that what was listed is not there any more, or not as a directory.
bool is_gone(const std::error_code& code);

// Thread-safe. Failures carry the system's error code. Symbolic links are entries, never followed,
// but for the drive's own path.
class DirectoryReader {
 public:
  virtual ~DirectoryReader() = default;

  virtual base::Result<DirectoryHandle> open_drive(const std::filesystem::path& drive) const = 0;

  // What its inode says, without opening it.
  virtual base::Result<DirectoryHandle> look_at_drive(const std::filesystem::path& drive) const = 0;

  // `path` is the logical path of the directory to open, `name` its last component.
  virtual base::Result<DirectoryHandle> open(const DirectoryHandle& parent, const std::string& name,
                                             std::string_view path) const = 0;

  // The directory at `below`, a path relative to `top`, of which no component may be a symbolic link.
  virtual base::Result<DirectoryHandle> open_below(const DirectoryHandle& top,
                                                   std::string_view below) const = 0;

  // Reads the whole directory, once. An entry that vanishes meanwhile was never there; any other
  // failure to list is one of the whole directory. Errc::interrupted where a stop was requested.
  virtual base::Result<Listing> read(const DirectoryHandle& directory, std::string_view path,
                                     const tracker::NamespaceRules& rules, FileNames file_names,
                                     const std::stop_token& stop) const = 0;
};

class PosixDirectoryReader final : public DirectoryReader {
 public:
  base::Result<DirectoryHandle> open_drive(const std::filesystem::path& drive) const override;
  base::Result<DirectoryHandle> look_at_drive(const std::filesystem::path& drive) const override;
  base::Result<DirectoryHandle> open(const DirectoryHandle& parent, const std::string& name,
                                     std::string_view path) const override;
  base::Result<DirectoryHandle> open_below(const DirectoryHandle& top, std::string_view below) const override;
  base::Result<Listing> read(const DirectoryHandle& directory, std::string_view path,
                             const tracker::NamespaceRules& rules, FileNames file_names,
                             const std::stop_token& stop) const override;
};

}  // namespace spoor::scanner
