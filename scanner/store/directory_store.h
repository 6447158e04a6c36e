#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Transaction.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "scanner/store/directory_row.h"
#include "scanner/store/files.h"
#include "scanner/store/sqlite.h"

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

  // The names and inode numbers of all children, by name.
  base::Result<Subdirectories> subdirectories(std::int64_t parent);

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

  SQLite::Database& database_;
  SqliteStatement find_;
  SqliteStatement children_;
  SqliteStatement subdirectories_;
  SqliteStatement newest_below_;
  std::optional<SqliteStatement> put_;  // not prepared before put(): a reader's database may lack columns
  SqliteStatement erase_;
  SqliteStatement parents_below_;
  SqliteStatement erase_children_;
  std::int64_t next_id_;
};

// The directories as the last committed scan left them, on a connection of its own: for a thread beside the
// one with the transaction.
class DirectorySnapshot {
 public:
  // Nothing if the database can't be opened, or has no write-ahead log: reading would hold up the writer.
  static std::optional<DirectorySnapshot> open(const std::string& file);

  DirectoryStore& directories() { return *store_; }

 private:
  explicit DirectorySnapshot(const std::string& file);

  std::unique_ptr<SQLite::Database> database_;
  std::unique_ptr<SQLite::Transaction> transaction_;  // one look at the log's index for all lookups
  std::unique_ptr<DirectoryStore> store_;
};

// The stored children of one directory by name, fetched some hundred at a time: a directory of millions does
// not have to fit in memory. Rows up to the current one may be written during the iteration.
//
// Not thread-safe.
class StoredChildren {
 public:
  // `parent` 0: no children. Starts after the name `after`, if given. `store` must outlive it.
  StoredChildren(DirectoryStore& store, std::int64_t parent, std::optional<std::string> after = std::nullopt)
      : store_(&store), parent_(parent), last_name_(std::move(after)) {}

  // The current row; null after the last one. Valid until the next call.
  base::Result<DirectoryRow*> peek();

  // Moves to the next row, after peek().
  void pop() { ++at_; }

 private:
  DirectoryStore* store_;
  std::int64_t parent_;
  std::vector<DirectoryRow> fetched_;
  std::size_t at_ = 0;
  std::optional<std::string> last_name_;
  bool all_fetched_ = false;
};

// The stored directories of one drive in the order of a walk: the root first, each before those below it.
// Failures are those of DirectoryStore.
//
// Not thread-safe. The rows must not be written during the iteration.
class StoredTree {
 public:
  // `store` must outlive it.
  StoredTree(DirectoryStore& store, std::int64_t parent_of_root)
      : store_(store), parent_of_root_(parent_of_root) {}

  // Only those below `row`, which has this path.
  StoredTree(DirectoryStore& store, const DirectoryRow& row, std::string_view path);

  // Starts after the directory of this path, even if it no longer exists. Once, before next().
  base::Result<> seek_behind(std::string_view path);

  // The next directory; nothing after the last one.
  base::Result<std::optional<DirectoryRow>> next();

  // Skips all below `row`, which next() returned last.
  void skip_below(const DirectoryRow& row);

  // The path of the directory that next() returned last.
  const std::string& path() const { return path_; }

 private:
  struct Level {
    StoredChildren children;
    std::size_t path_bytes = 0;  // of the directory whose children they are
  };

  void go_below(const DirectoryRow& row, std::optional<std::string> after);

  DirectoryStore& store_;
  const std::int64_t parent_of_root_;
  bool has_begun_ = false;
  std::deque<Level> open_;
  std::string path_;
};

// A query for the rows that match `rest`, and the row that it returns.
std::string select_directories(std::string_view rest);
DirectoryRow read_directory_row(const SqliteStatement& row);

}  // namespace spoor::scanner
