#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "scanner/database/sqlite.h"

namespace spoor::scanner {

// The path as a key whose bytewise order is that of a depth-first walk by name: a directory, then all below
// it. No name contains the NUL that takes the place of the slash.
std::string walk_key(std::string_view path);
std::string path_of_key(std::string_view key);

// The key of the lowest common ancestor; a key counts as its own ancestor.
std::string_view common_ancestor(std::string_view key, std::string_view other);

// A difference of sums, modulo 2^64: it may represent a negative number.
struct LinkCorrection {
  std::uint64_t bytes = 0;
  std::uint64_t allocated = 0;

  void add(const LinkCorrection& other) {
    bytes += other.bytes;
    allocated += other.allocated;
  }

  friend bool operator==(const LinkCorrection&, const LinkCorrection&) = default;
};

// Returns sum - correction. A saturated sum stays saturated.
constexpr std::uint64_t subtract_links(std::uint64_t sum, std::uint64_t correction) {
  return sum == std::numeric_limits<std::uint64_t>::max() ? sum : sum - correction;
}

// The excess in the sums of each subtree, because files with several hard links count in each directory that
// has them. Only subtrees with an excess other than zero have a row, and only up to the path length of a
// mark: the keys of a chain of directories take space quadratic in its depth.
//
// Differences are collected in memory, up to a bound, and written together. Failures are SqliteError.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it.
class LinkCorrections {
 public:
  static constexpr std::size_t collected_bytes_max = 4U << 20U;

  explicit LinkCorrections(SqliteDatabase& database);

  // Whether there are any.
  static bool are_in(SqliteDatabase& database);

  // The collected difference of the directory of this key: it counts in all subtrees that contain the
  // directory. Valid until write().
  LinkCorrection& at(std::int64_t drive, std::string_view key);

  bool is_to_be_written() const { return collected_bytes_ > collected_bytes_max; }
  // Writes the collected differences.
  void write();

  // Is called by write() for the key of each subtree whose correction changes.
  using OnChange = std::function<void(std::string_view key)>;
  void on_change(OnChange on_change) { on_change_ = std::move(on_change); }

  // Deletes everything of the drive, collected differences included.
  void erase(std::int64_t drive);

  // The written correction, without collected differences.
  LinkCorrection find(std::int64_t drive, std::string_view key);

 private:
  void add(std::int64_t drive, std::string_view key, const LinkCorrection& difference);

  std::map<std::pair<std::int64_t, std::string>, LinkCorrection> collected_;
  std::size_t collected_bytes_ = 0;
  OnChange on_change_;
  SqliteStatement find_;
  SqliteStatement put_;
  SqliteStatement erase_;
  SqliteStatement erase_drive_;
};

}  // namespace spoor::scanner
