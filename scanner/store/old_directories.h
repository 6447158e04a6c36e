// The directories of a scan.db of version 4 (1.0.0) or 5: one row for each, by the id of its parent and its
// name.
#pragma once

#include <SQLiteCpp/Database.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scanner/store/directory_row.h"
#include "scanner/store/sqlite.h"

namespace spoor::scanner {

// Reads them until the next scan migrates them. Failures are SQLite::Exception. Not thread-safe.
class OldDirectories {
 public:
  explicit OldDirectories(SQLite::Database& database);

  // Whether the database has them.
  static bool are_in(SQLite::Database& database);

  // As those of DirectoryStore.
  std::optional<DirectoryRow> find(std::int64_t parent, std::string_view name);
  std::vector<DirectoryRow> children(std::int64_t parent, const std::optional<std::string>& after,
                                     std::size_t count_max);

 private:
  SqliteStatement find_;
  SqliteStatement children_;
};

// Writes them into the tables of this version, some thousand in each transaction: the database stays one of
// the old version, and a migration that is killed goes on where it was. Throws SQLite::Exception.
void copy_old_directories(SQLite::Database& database);

// Puts the copy in their place, in the transaction that is open. Throws SQLite::Exception.
void replace_old_directories(SQLite::Database& database);

}  // namespace spoor::scanner
