#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "scanner/database/sqlite.h"
#include "scanner/store/directory_row.h"

namespace spoor::scanner {

// The totals of each subtree by owner, for directories down to some depth. They are changed by differences:
// one for each directory whose own files change, which counts in all subtrees that contain it. These are
// collected in memory, up to a bound, and written together.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it. Failures are
// SqliteError.
class OwnerSums {
 public:
  static constexpr std::size_t collected_bytes_max = 16U << 20U;

  // Sums of directories at most `depth` levels below the root of all drives.
  OwnerSums(SqliteDatabase& database, std::uint32_t depth);

  // Paths are logical ones.
  void add(std::int64_t drive, std::string_view path, const Owner& owner, const OwnedTotals& difference);

  // The encoded owners of a directory, and its own totals.
  struct Directory {
    std::string_view owners;
    const Totals& own;
  };
  // Replaces what the directory had.
  void replace(std::int64_t drive, std::string_view path, const Directory& before, const Directory& now);
  void take_out(std::int64_t drive, std::string_view path, const Directory& before) {
    replace(drive, path, before, {{}, before.own});
  }

  // Deletes everything of the drive, collected differences included.
  void erase_drive(std::int64_t drive);

  // Writes the collected differences.
  void write();

 private:
  using Place = std::pair<std::string, std::int64_t>;  // a path, and the drive
  using Collected = std::map<Place, Owners>;

  Owners& at(std::int64_t drive, std::string_view path);
  void add_to(Owners& differences, const Owner& owner, const OwnedTotals& difference);
  void add_to_parents();
  void put(const Place& place, const Owner& owner, const OwnedTotals& difference, bool may_be_known);

  const std::uint32_t depth_;
  Collected collected_;
  std::size_t collected_bytes_ = 0;
  Collected::iterator last_;  // that at() returned; the end: none
  SqliteStatement has_any_;
  SqliteStatement find_;
  SqliteStatement put_;
  SqliteStatement erase_;
  SqliteStatement erase_drive_;
};

// The depth of the sums, and the last scan that kept them, as they are stored with this key.
inline constexpr const char* owners_key = "owners";
struct OwnersKept {
  std::uint32_t depth = 0;
  std::uint64_t scan = 0;
};
std::string owners_setting(const OwnersKept& kept);
std::optional<OwnersKept> parse_owners_setting(std::string_view text);

void create_owner_tables(SqliteDatabase& database);
// Removes all that is stored of owners.
void forget_owners(SqliteDatabase& database);

// The files of one owner in a subtree, on all drives.
struct OwnerEntry {
  Owner owner;
  OwnedTotals totals;

  friend bool operator==(const OwnerEntry&, const OwnerEntry&) = default;
};

// Calls `visit` for each owner of files in the directory or below it, by uid and gid, until it returns false.
// Returns false if the last scan kept none, or none of directories so deep.
bool for_each_owner(SqliteDatabase& database, std::string_view path,
                    const std::function<bool(const OwnerEntry&)>& visit);

}  // namespace spoor::scanner
