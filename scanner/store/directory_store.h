#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "scanner/database/sqlite.h"
#include "scanner/store/database_schema.h"
#include "scanner/store/directory_names.h"
#include "scanner/store/directory_row.h"
#include "scanner/store/files.h"

namespace spoor::scanner {

// The tables of the directories, by parent id and name: `names` (directory_names.h), and a row for each
// directory by its id: in `newer`, or else in `directories`. Rows that a small scan changes lie all over
// `directories`: together they take few pages, and are merged later, many at once, in the order of ids. Reads
// the tables of 1.0.0 as well, for readers before the next scan. Failures are SqliteError.
//
// Not thread-safe. The database must outlive it.
class DirectoryTables {
 public:
  explicit DirectoryTables(SqliteDatabase& database);

  // The parent id of a drive's root, whose name is "".
  static std::int64_t parent_of_root(std::int64_t drive) { return -drive; }

  // Which of a directory's children are wanted; an empty function: all.
  using WantsChild = std::function<bool(std::string_view name)>;

  std::optional<DirectoryRow> find(std::int64_t parent, std::string_view name);

  // At most `count_max` of the wanted children by name, after the name `after`, or from the first one without
  // it. Rows are read of these alone.
  std::vector<DirectoryRow> children(std::int64_t parent, const std::optional<std::string>& after,
                                     std::size_t count_max, const WantsChild& wants = {});

  // The directory of this path on a drive.
  std::optional<DirectoryRow> find_path(std::int64_t drive, std::string_view path);

 protected:
  DirectoryRow row_of(std::string_view name, const NamedDirectory& directory);

  SqliteDatabase& database_;
  DirectoryNames names_;
  bool has_newer_ = true;  // whether there may be rows in `newer`

 private:
  SqliteStatement newer_row_;
  SqliteStatement row_;
  std::optional<OldDirectories> old_;  // instead of these
};

// The same, also for writing. Works in the transaction that is open on the database.
class DirectoryStore : public DirectoryTables {
 public:
  // new_id() starts at `next_id`.
  DirectoryStore(SqliteDatabase& database, std::int64_t next_id);

  // Whether all children, by name and inode number, are those found.
  bool has_children(std::int64_t parent, const Subdirectories& found);

  // The newest mtime of its children's subtrees; the lowest std::int64_t without children.
  std::int64_t newest_below(const DirectoryRow& row);

  // Adds the row, or replaces that of the same id, which must not be 0. Its name is put apart.
  void put(const DirectoryRow& row);
  void put_names(std::int64_t parent, const NameChanges& changes) { names_.apply(parent, changes); }

  // Both, of one directory.
  void put(std::int64_t parent, const DirectoryRow& row);

  // Removes the row and all below it, but not its name. Returns the number of removed rows. Throws
  // Errc::interrupted as base::Failure if a stop was requested.
  std::uint64_t erase(const DirectoryRow& row, const std::stop_token& stop);

  // Merges the newer rows; from now on, rows are put where they stay.
  void merge();

  // How many rows were put to be merged later.
  std::uint64_t put_apart() const { return put_apart_; }

  // An id that was never used before.
  std::int64_t new_id() { return next_id_++; }
  std::int64_t next_id() const { return next_id_; }

 private:
  void erase_children(std::int64_t parent, std::vector<std::int64_t>& parents, std::uint64_t& erased);
  void erase_row(std::int64_t id);

  SqliteStatement put_;
  SqliteStatement put_newer_;
  SqliteStatement erase_;
  SqliteStatement erase_newer_;
  std::int64_t next_id_;
  std::int64_t first_in_place_;  // rows of this id, and of later ones, are put where they stay
  std::uint64_t put_apart_ = 0;
};

// The stored children of one directory by name, fetched some hundred at a time: a directory of millions does
// not have to fit in memory. Rows up to the current one may be written during the iteration. Failures are
// SqliteError.
//
// Not thread-safe.
class ChildRows {
 public:
  // `parent` 0: no children. Starts after the name `after`, if given. `tables` must outlive it.
  ChildRows(DirectoryTables& tables, std::int64_t parent, std::optional<std::string> after = std::nullopt)
      : tables_(&tables), parent_(parent), last_name_(std::move(after)), all_fetched_(parent == 0) {}

  // The current row; null after the last one. Valid until the next call.
  DirectoryRow* peek();

  // Moves to the next row, after peek().
  void pop() { ++at_; }

 private:
  DirectoryTables* tables_;
  std::int64_t parent_;
  std::vector<DirectoryRow> fetched_;
  std::size_t at_ = 0;
  std::optional<std::string> last_name_;
  bool all_fetched_;
};

// The children of one logical directory by name, joined over the drives that have it. Failures are
// SqliteError.
//
// Not thread-safe.
class JoinedChildren {
 public:
  // `parents`: the rows of the directory, with an `id` each. Starts after the name `after`, if given.
  template <class Parents>
  JoinedChildren(DirectoryTables& tables, const Parents& parents,
                 const std::optional<std::string>& after = std::nullopt) {
    for (const auto& parent : parents) on_drives_.emplace_back(tables, parent.id, after);
  }

  // The next name; null after the last one. Valid until the next call.
  const std::string* peek();

  // Calls `visit` for each row of this name, with the number of its parent, and moves past them. The name is
  // that of peek(), or sorts before it: then there are none.
  void take(const std::string& name,
            const std::function<void(std::size_t parent, const DirectoryRow& row)>& visit);

 private:
  std::vector<ChildRows> on_drives_;
};

// The stored directories of one drive in the order of a walk: the root first, each before those below it.
// Failures are SqliteError.
//
// Not thread-safe. The rows must not be written during the iteration.
class StoredTree {
 public:
  // `tables` must outlive it.
  StoredTree(DirectoryTables& tables, std::int64_t parent_of_root)
      : tables_(tables), parent_of_root_(parent_of_root) {}

  // Only those below `row`, which has this path.
  StoredTree(DirectoryTables& tables, const DirectoryRow& row, std::string_view path);

  // Starts after the directory of this path, even if it no longer exists. Once, before next().
  void seek_behind(std::string_view path);

  // The next directory; nothing after the last one.
  std::optional<DirectoryRow> next();

  // Skips all below `row`, which next() returned last.
  void skip_below(const DirectoryRow& row);

  // The path of the directory that next() returned last.
  const std::string& path() const { return path_; }

 private:
  struct Level {
    ChildRows children;
    std::size_t path_bytes = 0;  // of the directory whose children they are
  };

  void go_below(const DirectoryRow& row, std::optional<std::string> after);

  DirectoryTables& tables_;
  const std::int64_t parent_of_root_;
  bool has_begun_ = false;
  std::deque<Level> open_;
  std::string path_;
};

// Whether the path is one below `top`, which is not itself.
inline bool is_below(std::string_view path, std::string_view top) {
  if (top.empty()) return !path.empty();
  return path.size() > top.size() && path.starts_with(top) && path[top.size()] == '/';
}

inline NamedDirectory named(const DirectoryRow& row) { return {row.id, row.inode, row.birth}; }

// Throw SqliteError.
void merge_newer_rows(SqliteDatabase& database);
void create_directory_tables(SqliteDatabase& database, std::string_view rows = "directories");

}  // namespace spoor::scanner
