#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scanner/store/history_point.h"
#include "scanner/store/sqlite.h"

namespace spoor::scanner {

// What distinguishes a directory from another one of the same name, on one drive.
struct HistoryIdentity {
  std::int64_t drive = 0;
  std::uint64_t inode = 0;
  std::uint32_t birth = 0;  // as in DirectoryRow

  friend auto operator<=>(const HistoryIdentity&, const HistoryIdentity&) = default;
};

// The stored history of one directory.
struct HistoryRow {
  std::int64_t id = 0;
  std::string name;  // the last component; empty for the root
  HistoryIdentity identity = {};
  std::string points = {};  // encoded; empty if only directories below it have a history
};

// The totals of directories over time: a tree of rows like that of the directories, each with its encoded
// points. Rows of directories that no longer exist stay.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it. Failures are
// SQLite::Exception.
class HistoryStore {
 public:
  // The parent of the root, whose name is "".
  static constexpr std::int64_t parent_of_root = 0;

  explicit HistoryStore(SQLite::Database& database);

  std::optional<HistoryRow> find(std::int64_t parent, std::string_view name);

  // At most `count_max` children by name, after the name `after`.
  std::vector<HistoryRow> children(std::int64_t parent, const std::optional<std::string>& after,
                                   std::size_t count_max);

  // Adds a row; ignores its id, and returns the new one.
  std::int64_t add(std::int64_t parent, const HistoryRow& row);
  // Updates the identity and the points. `gone_at` is when the directory was deleted; nothing if it exists.
  // Returns false if there is no such row.
  bool update(const HistoryRow& row, std::optional<std::int64_t> gone_at);
  // Moves the row, with all below it. There must be no row of that name.
  void move(std::int64_t id, std::int64_t parent, std::string_view name);
  // Removes the row and all below it. Returns how many, and how many points they had.
  struct Removed {
    std::uint64_t rows = 0;
    std::uint64_t points = 0;
  };
  Removed erase(std::int64_t id);

  // The directory that was deleted first, of those deleted.
  std::optional<std::int64_t> first_gone();

  // The points of a row. Throws if they are damaged.
  static HistoryPoints points_of(const HistoryRow& row);

 private:
  SQLite::Database& database_;
  SqliteStatement find_;
  SqliteStatement children_;
  SqliteStatement add_;
  SqliteStatement update_;
  SqliteStatement move_;
  SqliteStatement below_;
  SqliteStatement erase_;
  SqliteStatement first_gone_;
};

// Throw SQLite::Exception.
void create_history_tables(SQLite::Database& database);
void drop_history_tables(SQLite::Database& database);
bool has_history_tables(SQLite::Database& database);

// A query for the rows that match `rest`, and the row that it returns.
std::string select_history(std::string_view rest);
HistoryRow read_history_row(const SqliteStatement& row);

}  // namespace spoor::scanner
