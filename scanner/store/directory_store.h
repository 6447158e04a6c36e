#pragma once

#include <SQLiteCpp/Database.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "scanner/store/directory_row.h"
#include "scanner/store/sqlite_statement.h"

namespace spoor::scanner {

// The rows of the directories, by parent id and name. Failures are Errc::database_failed or database_damaged,
// unless noted otherwise.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it.
class DirectoryStore {
 public:
  // new_id() starts at `next_id`.
  DirectoryStore(SQLite::Database& database, std::int64_t next_id);

  // The parent id of a drive's root, whose name is "".
  static std::int64_t parent_of_root(std::int64_t drive) { return -drive; }

  base::Result<std::optional<DirectoryRow>> find(std::int64_t parent, std::string_view name);

  // At most `count_max` children by name, after the name `after`, or from the first one without it.
  base::Result<std::vector<DirectoryRow>> children(std::int64_t parent,
                                                   const std::optional<std::string>& after,
                                                   std::size_t count_max);

  // The newest mtime of its children's subtrees; the lowest std::int64_t without children.
  base::Result<std::int64_t> newest_below(const DirectoryRow& row);

  // Adds the row, or replaces the one of the same parent and name.
  base::Result<> put(std::int64_t parent, const DirectoryRow& row);

  // Removes the row and all below it. Returns the number of removed rows, or Errc::interrupted if a stop was
  // requested.
  base::Result<std::uint64_t> erase(std::int64_t parent, const DirectoryRow& row,
                                    const std::stop_token& stop);

  // Removes all below. The row itself stays, with outdated sums: replace it with put().
  base::Result<std::uint64_t> erase_below(const DirectoryRow& row, const std::stop_token& stop);

  // An id that was never used before.
  std::int64_t new_id() { return next_id_++; }
  std::int64_t next_id() const { return next_id_; }

 private:
  base::Result<std::uint64_t> erase_children(std::int64_t parent, std::vector<std::int64_t>& parents);

  static DirectoryRow read_row(const SqliteStatement& statement);

  template <class Action>
  auto guarded_store(std::string_view what, Action&& action);

  SQLite::Database& database_;
  const bool has_entries_;
  SqliteStatement find_;
  SqliteStatement children_;
  SqliteStatement newest_below_;
  SqliteStatement put_;
  SqliteStatement erase_;
  SqliteStatement parents_below_;
  SqliteStatement erase_children_;
  std::int64_t next_id_;
};

// Adds the column of DirectoryRow::entries to a database that lacks it, with 0 in all rows. Throws
// SQLite::Exception.
void add_entries_column(SQLite::Database& database);

// The columns of a row in the order of read_directory_row(): all but DirectoryRow::entries.
extern const char* const directory_columns;
DirectoryRow read_directory_row(const SqliteStatement& statement);

}  // namespace spoor::scanner
