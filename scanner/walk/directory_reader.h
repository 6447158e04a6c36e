// Reading directories, one at a time.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "scanner/store/directory_row.h"
#include "scanner/store/files.h"
#include "tracker/paths/namespace_rules.h"

namespace spoor::scanner {

// The entries of a directory that the rules do not ignore.
struct Listing {
  Totals own;               // a file with several names in it has one size
  LinkedFiles linked = {};  // of them, those that have further names, here or elsewhere; sorted
  // Of the names of all entries, and of the size, mtime and ctime of those that are no directories: differs
  // whenever one of them does. The order of the listing does not count.
  std::uint64_t signature = 0;
  // The same without the directory's own times and the space that files take; never 0.
  std::uint64_t entries = 0;
  // Something changed so shortly before the reading that it may change again without another time
  // (is_within_step): the same signature proves nothing next time. The signatures of such files in `files`
  // are never found again.
  bool is_racy = false;
  Subdirectories subdirectories;  // sorted
  std::optional<Files> files;     // sorted; nothing unless ListingParts::files
  std::string owners = {};  // of the files, encoded (store/owner_sums.h); empty unless ListingParts::owners
  // When the directory or a file in it was changed last, its attributes included.
  std::int64_t ctime_ns = 0;
  // The first failure to look at a file: the totals and the signature are without it.
  std::optional<base::Error> incomplete;
};

// What a listing has beyond the sums.
struct ListingParts {
  bool files = false;   // their names
  bool owners = false;  // those of the files
};

// Whether a change made at `now_ns`, or later, may still get the time `time_ns`: file systems keep times in
// steps. Both are times of the kernel's clock for files (base::FileTimeClock), or of a server whose clock is
// at most a tick behind it. A time of whole seconds is that of a file system which keeps no fractions: ext4
// with inodes of 128 bytes has steps of 1 s, FAT of 2 s.
inline bool is_within_step(std::int64_t time_ns, std::int64_t now_ns) {
  using std::chrono::nanoseconds;
  constexpr nanoseconds tick = std::chrono::milliseconds(10);
  constexpr nanoseconds coarsest = std::chrono::seconds(2);
  constexpr std::int64_t second = nanoseconds(std::chrono::seconds(1)).count();
  return time_ns > now_ns - ((time_ns % second == 0 ? coarsest : nanoseconds(0)) + tick).count();
}

// What the inode of a directory says.
struct DirectoryFacts {
  std::uint64_t device = 0;
  std::uint64_t mount = 0;      // the id of the mount it was reached by; before Linux 5.8 the device
  std::uint64_t subvolume = 0;  // of btrfs; 0: that of the drive's root
  std::uint64_t inode = 0;      // unique on the drive: numbers of another subvolume are hashed with it
  std::uint32_t birth = 0;      // its identity: identity_of_birth()
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
};

// An open directory. Moving leaves the source closed, with its facts. Not thread-safe.
struct DirectoryHandle : DirectoryFacts {
  DirectoryHandle() = default;
  explicit DirectoryHandle(int open_descriptor) : descriptor(open_descriptor) {}
  DirectoryHandle(DirectoryHandle&& other) noexcept
      : DirectoryFacts(other.facts()), descriptor(std::exchange(other.descriptor, -1)) {}
  DirectoryHandle& operator=(DirectoryHandle&& other) noexcept {
    close();
    DirectoryFacts::operator=(other.facts());
    descriptor = std::exchange(other.descriptor, -1);
    return *this;
  }
  DirectoryHandle(const DirectoryHandle&) = delete;
  DirectoryHandle& operator=(const DirectoryHandle&) = delete;
  ~DirectoryHandle() { close(); }

  void close();

  const DirectoryFacts& facts() const { return *this; }
  void take_facts(const DirectoryFacts& facts) { DirectoryFacts::operator=(facts); }

  int descriptor = -1;
};

// Whether the failure means that what was listed is gone, or is no directory any more.
bool is_gone(const std::error_code& code);

// What distinguishes a directory from another one that had its inode number before: file systems give the
// numbers of removed directories to new ones. 32 bits, in the column `birth` of its row (docs/formats.md).
//
// Proofs: a directory keeps them as long as it exists. Of the time of creation; or, if the file system keeps
// none (ext4 with inodes of 128 bytes, XFS version 4), of the generation of the inode.
std::uint32_t identity_of_birth(std::int64_t birth_ns);
std::uint32_t identity_of_generation(std::uint32_t generation);

// For a file system that has neither, such as NFS or FUSE. No proof: another ctime may be that of another
// directory, or of this one after a change; the same ctime is that of this one.
std::uint32_t identity_of_ctime(std::int64_t ctime_ns);

// Whether the directory found is proven not to be the stored one, though it has its inode number.
bool is_another(const DirectoryRow& stored, const DirectoryHandle& found);

// Whether nothing proves that the directory found, which has the inode number of the stored one, is that one.
bool may_be_another(const DirectoryRow& stored, const DirectoryHandle& found);

// Thread-safe. Failures carry the system's error code. Symbolic links are entries, never followed, except in
// the drive's own path.
class DirectoryReader {
 public:
  virtual ~DirectoryReader() = default;

  virtual base::Result<DirectoryHandle> open_drive(const std::filesystem::path& drive) const = 0;

  // Only what its inode has: the directory can't be read by that handle, and does not count as opened.
  virtual base::Result<DirectoryHandle> look_at_drive(const std::filesystem::path& drive) const = 0;

  // The first bytes of a file on the drive of this root; nothing if there is none.
  virtual base::Result<std::optional<std::string>> read_file(const DirectoryHandle& root, const char* name,
                                                             std::size_t bytes_max) const = 0;

  // The directory at `below`, a path relative to `top`, whose logical path is `path`. Fails if a component is
  // a symbolic link, and with std::errc::cross_device_link if another mount begins at one: it is not opened.
  virtual base::Result<DirectoryHandle> open(const DirectoryHandle& top, std::string_view below,
                                             std::string_view path) const = 0;

  // Whether the file system of this directory gives it another mtime and ctime with every entry that is
  // added, removed or renamed, by the clock of this machine.
  virtual bool changes_times_with_entries(const DirectoryHandle& directory) const = 0;

  // What the inode of the directory at `below` has. Any component but the last may be a symbolic link, so
  // the result may be of another directory: compare it. Its identity is no_identity where a path does not
  // give it, or where names change without the times (encrypted directories).
  virtual base::Result<DirectoryFacts> look_at(const DirectoryHandle& top, std::string_view below,
                                               std::string_view path) const = 0;

  // Reads the whole directory, once. An entry that vanishes meanwhile is left out; any other failure to list
  // is one of the whole directory. Errc::interrupted if a stop was requested.
  virtual base::Result<Listing> read(const DirectoryHandle& directory, std::string_view path,
                                     const tracker::NamespaceRules& rules, const ListingParts& parts,
                                     const std::stop_token& stop) const = 0;
};

// Compares the times of files with `clock`, which must outlive it; by default with the kernel's clock for
// files.
class PosixDirectoryReader final : public DirectoryReader {
 public:
  PosixDirectoryReader() : clock_(file_clock_) {}
  explicit PosixDirectoryReader(const base::Clock& clock) : clock_(clock) {}
  PosixDirectoryReader(const PosixDirectoryReader&) = delete;
  PosixDirectoryReader& operator=(const PosixDirectoryReader&) = delete;
  ~PosixDirectoryReader() override = default;

  base::Result<DirectoryHandle> open_drive(const std::filesystem::path& drive) const override;
  base::Result<DirectoryHandle> look_at_drive(const std::filesystem::path& drive) const override;
  base::Result<std::optional<std::string>> read_file(const DirectoryHandle& root, const char* name,
                                                     std::size_t bytes_max) const override;
  base::Result<DirectoryHandle> open(const DirectoryHandle& top, std::string_view below,
                                     std::string_view path) const override;
  bool changes_times_with_entries(const DirectoryHandle& directory) const override;
  base::Result<DirectoryFacts> look_at(const DirectoryHandle& top, std::string_view below,
                                       std::string_view path) const override;
  base::Result<Listing> read(const DirectoryHandle& directory, std::string_view path,
                             const tracker::NamespaceRules& rules, const ListingParts& parts,
                             const std::stop_token& stop) const override;

 private:
  // `above`: the directory it was opened below; null for a drive.
  base::Result<DirectoryHandle> finish_open(int descriptor, const DirectoryFacts* above) const;
  std::int64_t now_ns() const { return clock_.wall_now().time_since_epoch().count(); }

  const base::FileTimeClock file_clock_;
  const base::Clock& clock_;
};

// Of what statx() gives. Times beyond the range of nanoseconds are clamped: some file systems keep any 64-bit
// second. Inode numbers repeat in each subvolume; in a snapshot, so do the times of creation.
std::int64_t nanoseconds(const struct statx_timestamp& time);
bool has_mount(const struct statx& status);
std::uint64_t inode_in(std::uint64_t subvolume, std::uint64_t number);

}  // namespace spoor::scanner
