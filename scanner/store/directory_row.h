// The stored row of one directory, and who owns its files.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace spoor::scanner {

// Sums saturate here: this value means this much or more.
inline constexpr std::uint64_t sum_max = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint64_t saturating_add(std::uint64_t one, std::uint64_t other) {
  return other > sum_max - one ? sum_max : one + other;
}

constexpr std::uint64_t saturating_multiply(std::uint64_t one, std::uint64_t other) {
  return other != 0 && one > sum_max / other ? sum_max : one * other;
}

// Totals of a set of non-directories. `files` counts names; the sizes of a file with several hard links count
// once in each directory that holds it (link_store.h corrects the sums of a subtree).
struct Totals {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;      // apparent size; regular files only
  std::uint64_t allocated = 0;  // bytes allocated on the drive
  std::int64_t mtime_ns = 0;    // the newest of the files and of the directories that hold them

  // Adds, saturating at sum_max; keeps the newest mtime.
  void add(const Totals& other);

  // Whether a sum has reached sum_max: nothing can be subtracted from it any more.
  bool is_saturated() const { return files == sum_max || bytes == sum_max || allocated == sum_max; }

  friend bool operator==(const Totals&, const Totals&) = default;
};

enum class DirectoryState : std::uint8_t {
  ok = 0,
  // Reading it failed. Its totals are the previous ones, or zero, and the marks below it are consumed: all of
  // it is read once that is possible.
  unread = 1,
  // Listed, but the size of some files could not be read: its own totals are the previous ones.
  incomplete = 2,
  // Another file system is mounted here, which is not entered. The mount hides what is beneath, so all of it
  // is read once the mount is gone.
  mount_point = 3,
};

// DirectoryRow::birth: nothing is known; or, with this bit, a proof (directory_reader.h).
inline constexpr std::uint32_t no_identity = 0;
inline constexpr std::uint32_t identity_proof_bit = 1;
constexpr bool is_proof(std::uint32_t identity) { return (identity & identity_proof_bit) != 0; }

// What is stored of one directory. The root of a drive has the empty name.
struct DirectoryRow {
  std::string name;
  std::int64_t id = 0;      // 0: not assigned yet
  std::uint64_t inode = 0;  // from its parent's listing; a drive's root: its own
  std::uint32_t birth = 0;  // its identity (directory_reader.h)
  DirectoryState state = DirectoryState::ok;
  bool is_read = false;         // by some scan
  std::uint64_t signature = 0;  // of its own entries
  bool is_racy = false;         // Listing::is_racy of that signature
  // The signature without the directory's own times, which ignored entries also change; 0: not read.
  std::uint64_t entries = 0;
  // Of the directory itself when it was read, if nothing but subdirectories counts in it; else 0. With
  // own.mtime_ns, which is then its own as well, it tells whether these are still the same
  // (walk/walk_planner.cpp).
  std::int64_t ctime_ns = 0;
  // Of its own files, encoded (encode_owners()); empty if they are not known, or there are none.
  std::string owners = {};

  Totals own;      // its own files
  Totals subtree;  // its own and those of all directories below

  std::uint64_t directories = 0;   // number of rows below it
  std::uint64_t pending = 0;       // unread or incomplete, in the subtree, itself included
  std::uint64_t mount_points = 0;  // in the subtree, itself included

  bool itself_pending() const {
    return state == DirectoryState::unread || state == DirectoryState::incomplete;
  }

  // Sets the state, and updates the sums over the subtree.
  void set_state(DirectoryState to);

  // Sets the own totals, and removes all subdirectories from the sums.
  void restart_sums(const Totals& own_totals);

  // Sets the own totals, and keeps those of all subdirectories in the sums, which must not be saturated. The
  // newest mtime is kept, even if it was that of the own files.
  void replace_own(const Totals& own_totals);

  // Adds a subdirectory, with everything below it, to the sums.
  void add_child(const DirectoryRow& child);

  // Adds the sums of a row that does not count as a directory itself.
  void add_sums(const DirectoryRow& sums);

  // Subtracts a subdirectory from the sums, which must not be saturated. The newest mtime is kept, even if it
  // is that of the child.
  void remove_child(const DirectoryRow& child);

  friend bool operator==(const DirectoryRow&, const DirectoryRow&) = default;
};

// A row as it is stored (docs/formats.md), but for what is stored elsewhere: id, name, inode, birth and
// owners.
std::string encode_row(const DirectoryRow& row);

// Sets the same of `row`. False if the bytes are not a valid row.
bool decode_row(std::string_view bytes, DirectoryRow& row);

struct Owner {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;

  friend auto operator<=>(const Owner&, const Owner&) = default;
};

// All further owners of a directory that has more than owners_max. No file has these ids: chown(2) takes them
// for "unchanged".
inline constexpr Owner other_owners = {std::numeric_limits<std::uint32_t>::max(),
                                       std::numeric_limits<std::uint32_t>::max()};
inline constexpr std::size_t owners_max = 1000;  // of the files in one directory

// The files of one owner, or a difference of such totals, modulo 2^64: it may represent a negative number.
// The members are those of Totals.
struct OwnedTotals {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t allocated = 0;

  void add(const OwnedTotals& other) {
    files += other.files;
    bytes += other.bytes;
    allocated += other.allocated;
  }

  OwnedTotals negative() const { return {-files, -bytes, -allocated}; }

  friend bool operator==(const OwnedTotals&, const OwnedTotals&) = default;
};

using Owners = std::map<Owner, OwnedTotals>;

// Of a single owner only the ids: its totals are the directory's own. Empty for no owner.
std::string encode_owners(const Owners& owners);

// `own` are the directory's own totals. Nothing for damaged bytes.
std::optional<Owners> decode_owners(std::string_view bytes, const Totals& own);

}  // namespace spoor::scanner
