#include "scanner/store/history_store.h"

#include <SQLiteCpp/Column.h>
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <system_error>
#include <utility>

#include "scanner/store/checksum_vfs.h"
#include "scanner/store/database_schema.h"

namespace spoor::scanner {
namespace {

// A rowid table stores rows of up to a page without overflow pages. Siblings get adjacent ids.
constexpr const char* tables = R"sql(
CREATE TABLE history(
  id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, name BLOB NOT NULL,
  drive INTEGER NOT NULL, inode INTEGER NOT NULL, birth INTEGER NOT NULL,
  gone_at INTEGER, points BLOB NOT NULL
);
CREATE UNIQUE INDEX history_names ON history(parent, name);
CREATE INDEX history_gone ON history(gone_at) WHERE gone_at IS NOT NULL;
)sql";

// The first row is the root; its name is known even if the row cannot be read.
constexpr const char* add_root_if_missing =
    "INSERT OR IGNORE INTO history VALUES(1, 0, x'', 0, 0, 0, NULL, x'')";
constexpr const char* erase_unreachable = R"sql(
WITH RECURSIVE reachable(id) AS (
  SELECT id FROM history WHERE parent = 0
  UNION SELECT history.id FROM history JOIN reachable ON history.parent = reachable.id
)
DELETE FROM history WHERE id NOT IN reachable
)sql";

constexpr std::int64_t id_max = std::numeric_limits<std::int64_t>::max() / 2;
constexpr int busy_timeout_ms = 10'000;

bool is_damage(const SQLite::Exception& exception) {
  const int code = exception.getErrorCode() & 0xff;
  return code != SQLITE_BUSY && code != SQLITE_NOMEM;
}

// Reads the rows of a damaged table by id, and skips those that cannot be read.
class DamagedRows {
 public:
  explicit DamagedRows(SQLite::Database& database)
      : query_(database, "SELECT id, parent, name, gone_at, points FROM history WHERE id > ?1 ORDER BY id") {}

  bool is_whole() const { return is_whole_; }

  // Goes to the next row. False at the end.
  bool step() {
    for (;;) {
      try {
        if (!std::exchange(is_open_, true)) query_.bind(1, last_ + skipped_);
        if (!query_.step()) return false;
        last_ = query_.number(0);
        skipped_ = 0;
        return true;
      } catch (const SQLite::Exception& exception) {
        if (!is_damage(exception)) throw;
        is_whole_ = false;
        query_.reset();
        is_open_ = false;
        // A damaged page holds many rows.
        skipped_ = std::max<std::int64_t>(2 * skipped_, 1);
        if (skipped_ > id_max - last_) return false;
      }
    }
  }
  const SqliteStatement& row() const { return query_; }
  void skip() { is_whole_ = false; }

 private:
  SqliteStatement query_;
  std::int64_t last_ = 0;
  std::int64_t skipped_ = 0;
  bool is_open_ = false;
  bool is_whole_ = true;
};

// Adds the rows to an empty table. Returns the time of the first point; nothing without points.
std::optional<std::int64_t> copy_rows(DamagedRows& from, SQLite::Database& to) {
  std::optional<std::int64_t> since;
  SqliteStatement add(to, "INSERT OR IGNORE INTO history VALUES(?1, ?2, ?3, 0, 0, 0, ?4, ?5)");
  while (from.step()) {
    const SqliteStatement& row = from.row();
    const auto points = decode_points(row.blob(4));
    if (!points) {
      from.skip();
      continue;
    }
    if (!points->empty()) since = std::min(since.value_or(points->front().at), points->front().at);
    const SqliteStatement::Use use(add, row.number(0), row.number(1), row.blob(2));
    if (!row.is_null(3)) add.bind(4, row.number(3));
    add.bind(5, row.blob(4));
    add.run();
  }
  return since;
}

}  // namespace

std::string select_history(std::string_view rest) {
  return std::string("SELECT id, name, drive, inode, birth, points FROM history WHERE ").append(rest);
}

HistoryRow read_history_row(const SqliteStatement& row) {
  return {row.number(0),
          std::string(row.blob(1)),
          {row.number(2), row.number<std::uint64_t>(3), row.number<std::uint32_t>(4)},
          std::string(row.blob(5))};
}

void create_history_tables(SQLite::Database& database) { database.exec(tables); }

void drop_history_tables(SQLite::Database& database) { database.exec("DROP TABLE history"); }

bool has_history_tables(SQLite::Database& database) {
  return database.execAndGet("SELECT count(*) FROM sqlite_master WHERE name = 'history'").getInt() > 0;
}

CopiedHistory copy_history(const std::filesystem::path& from, SQLite::Database& to) {
  std::error_code failure;
  if (!std::filesystem::exists(from, failure) && !failure) return {};
  std::optional<SQLite::Database> source;
  try {
    source.emplace(from.native(), SQLite::OPEN_READONLY | SQLite::OPEN_NOMUTEX, busy_timeout_ms,
                   checksum_vfs());
    if (!has_history_tables(*source)) return {};
  } catch (const SQLite::Exception& exception) {
    if (!is_damage(exception)) throw;
    return {.is_whole = false};
  }
  create_history_tables(to);
  DamagedRows rows(*source);
  const auto since = copy_rows(rows, to);
  if (!since) {
    drop_history_tables(to);
    return {.is_whole = rows.is_whole()};
  }
  to.exec(add_root_if_missing);
  to.exec(erase_unreachable);
  std::uint64_t directories = 0;
  std::uint64_t points = 0;
  for (SqliteStatement kept(to, "SELECT points FROM history"); kept.step(); ++directories)
    points += decode_points(kept.blob(0)).value_or(HistoryPoints()).size();
  put_setting(to, history_since_key, std::to_string(*since));
  put_setting(to, history_counts_key, fmt::format("{} {} 0", directories, points));
  return {.is_any = true, .is_whole = rows.is_whole()};
}

HistoryStore::HistoryStore(SQLite::Database& database)
    : database_(database),
      find_(database, select_history("parent = ?1 AND name = ?2")),
      children_(database, select_history("parent = ?1 AND name >= ?2 AND (?3 OR name > ?2) "
                                         "ORDER BY name LIMIT ?4")),
      add_(database,
           "INSERT INTO history(parent, name, drive, inode, birth, points) VALUES(?1, ?2, ?3, ?4, ?5, ?6)"),
      update_(database,
              "UPDATE history SET drive = ?2, inode = ?3, birth = ?4, points = ?5, gone_at = ?6 "
              "WHERE id = ?1"),
      move_(database, "UPDATE history SET parent = ?2, name = ?3 WHERE id = ?1"),
      below_(database, "SELECT id FROM history WHERE parent = ?1"),
      erase_(database, "DELETE FROM history WHERE id = ?1 RETURNING points"),
      first_gone_(database, "SELECT id FROM history WHERE gone_at IS NOT NULL ORDER BY gone_at, id LIMIT 1") {
}

std::optional<HistoryRow> HistoryStore::find(std::int64_t parent, std::string_view name) {
  const SqliteStatement::Use use(find_, parent, name);
  if (!find_.step()) return std::nullopt;
  return read_history_row(find_);
}

std::vector<HistoryRow> HistoryStore::children(std::int64_t parent, const std::optional<std::string>& after,
                                               std::size_t count_max) {
  std::vector<HistoryRow> rows;
  const std::string_view from = after ? std::string_view(*after) : std::string_view();
  const SqliteStatement::Use use(children_, parent, from, !after, count_max);
  while (children_.step()) rows.push_back(read_history_row(children_));
  return rows;
}

std::int64_t HistoryStore::add(std::int64_t parent, const HistoryRow& row) {
  const HistoryIdentity& identity = row.identity;
  const SqliteStatement::Use use(add_, parent, row.name, identity.drive, identity.inode, identity.birth,
                                 row.points);
  add_.run();
  return database_.getLastInsertRowid();
}

bool HistoryStore::update(const HistoryRow& row, std::optional<std::int64_t> gone_at) {
  const HistoryIdentity& identity = row.identity;
  const SqliteStatement::Use use(update_, row.id, identity.drive, identity.inode, identity.birth, row.points);
  if (gone_at) update_.bind(6, *gone_at);
  return update_.run() > 0;
}

void HistoryStore::move(std::int64_t id, std::int64_t parent, std::string_view name) {
  const SqliteStatement::Use use(move_, id, parent, name);
  move_.run();
}

HistoryStore::Removed HistoryStore::erase(std::int64_t id) {
  Removed removed;
  std::vector<std::int64_t> waiting{id};
  while (!waiting.empty()) {
    const std::int64_t next = waiting.back();
    waiting.pop_back();
    {
      const SqliteStatement::Use use(below_, next);
      while (below_.step()) waiting.push_back(below_.number(0));
    }
    const SqliteStatement::Use use(erase_, next);
    while (erase_.step()) {
      ++removed.rows;
      removed.points += decode_points(erase_.blob(0)).value_or(HistoryPoints()).size();
    }
  }
  return removed;
}

std::optional<std::int64_t> HistoryStore::first_gone() {
  const SqliteStatement::Use use(first_gone_);
  if (!first_gone_.step()) return std::nullopt;
  return first_gone_.number(0);
}

HistoryPoints HistoryStore::points_of(const HistoryRow& row) {
  auto points = decode_points(row.points);
  if (!points) throw SQLite::Exception("a history cannot be read", SQLITE_CORRUPT);
  return *std::move(points);
}

}  // namespace spoor::scanner
