#pragma once

#include <SQLiteCpp/Database.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "scanner/sqlite_statement.h"

namespace spoor::scanner {

// The path as a key whose bytewise order is that of a walk in depth and by name: a directory, then all below
// it.
std::string link_key(std::string_view path);

// The key of the lowest directory that holds both, or is one of them.
std::string_view common_ancestor(std::string_view key, std::string_view other);

// A difference of sums, modulo 2^64: it may stand for less than nothing.
struct LinkCorrection {
  std::uint64_t bytes = 0;
  std::uint64_t allocated = 0;

  void add(const LinkCorrection& other) {
    bytes += other.bytes;
    allocated += other.allocated;
  }

  friend bool operator==(const LinkCorrection&, const LinkCorrection&) = default;
};

// What is left of a sum. One that is too large to be counted stays so.
constexpr std::uint64_t subtract_links(std::uint64_t sum, std::uint64_t correction) {
  return sum == std::numeric_limits<std::uint64_t>::max() ? sum : sum - correction;
}

// What the sums of each subtree hold too much, because files with several hard links count in each directory
// that has them. Only subtrees for which that is not zero have a row, and whose path is not too long for a
// mark: of a chain of directories, the rows are quadratic in its depth.
//
// Differences are collected in memory, up to a bound, and written together. Failures are SQLite::Exception.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it.
class LinkCorrections {
 public:
  static constexpr std::size_t collected_bytes_max = 4U << 20U;

  explicit LinkCorrections(SQLite::Database& database);

  // What is collected for the directory of that key: it counts in all subtrees that hold the directory. Valid
  // until write().
  LinkCorrection& at(std::int64_t drive, std::string_view key);

  bool is_to_be_written() const { return collected_bytes_ > collected_bytes_max; }
  // Writes what is collected.
  void write();

  // Drops all of the drive, what is collected included.
  void erase(std::int64_t drive);

  // As it is written.
  LinkCorrection find(std::int64_t drive, std::string_view key);

 private:
  void add(std::int64_t drive, std::string_view key, const LinkCorrection& difference);

  std::map<std::pair<std::int64_t, std::string>, LinkCorrection> collected_;
  std::size_t collected_bytes_ = 0;
  SqliteStatement find_;
  SqliteStatement put_;
  SqliteStatement erase_;
  SqliteStatement erase_drive_;
};

}  // namespace spoor::scanner
