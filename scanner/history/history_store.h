#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scanner/database/sqlite.h"
#include "scanner/history/history_point.h"

namespace spoor::scanner {

// Settings of the history (scanner/usage/scan_history.h): the time of the first scan with one, the last
// scan, the settings of that scan, how much is kept, and KnownDirectories of that scan.
inline constexpr const char* history_since_key = "history_since";
inline constexpr const char* history_scan_key = "history_scan";
inline constexpr const char* history_settings_key = "history_settings";
inline constexpr const char* history_counts_key = "history_counts";
inline constexpr const char* history_known_key = "history_known";

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
// SqliteError.
class HistoryStore {
 public:
  // The parent of the root, whose name is "".
  static constexpr std::int64_t parent_of_root = 0;

  explicit HistoryStore(SqliteDatabase& database);

  std::optional<HistoryRow> find(std::int64_t parent, std::string_view name);
  std::optional<HistoryRow> find_path(std::string_view path);

  // Goes to the first child of this row, by name.
  void open(std::int64_t parent);
  // The current child; nothing after the last one.
  const std::optional<HistoryRow>& row() const { return row_; }
  void step();

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
  SqliteDatabase& database_;
  SqliteStatement find_;
  SqliteStatement all_children_;
  SqliteStatement children_;
  SqliteStatement add_;
  SqliteStatement update_;
  SqliteStatement move_;
  SqliteStatement below_;
  SqliteStatement erase_;
  SqliteStatement first_gone_;
  std::optional<HistoryRow> row_;
};

// Throw SqliteError.
void create_history_tables(SqliteDatabase& database);
void drop_history_tables(SqliteDatabase& database);
bool has_history_tables(SqliteDatabase& database);
// When the history begins, and whether directories were refused one because of a bound.
std::int64_t history_since(SqliteDatabase& database);
bool is_history_full(SqliteDatabase& database);

// Copies what can be read of the history in the file `from`, a damaged database, to one that has none, and in
// which a transaction is open: the next scan continues it. A directory below one that cannot be read is lost.
// The identities of directories are not copied: their drives get other ids. Throws SqliteError only if
// writing fails, or the file is locked.
struct CopiedHistory {
  bool is_any = false;
  bool is_whole = true;  // false, too, if it cannot be seen whether there is a history
};
CopiedHistory copy_history(const std::filesystem::path& from, SqliteDatabase& to);

}  // namespace spoor::scanner
