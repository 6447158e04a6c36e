#include "scanner/history/history_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <system_error>
#include <utility>

#include "scanner/database/checksum_vfs.h"
#include "scanner/database/database_files.h"
#include "tracker/paths/path.h"

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

bool is_damage(const SqliteError& exception) {
  const int code = exception.code();
  return code != SQLITE_BUSY && code != SQLITE_NOMEM;
}

// Reads the rows of a damaged table by id, and skips those that cannot be read.
class DamagedRows {
 public:
  explicit DamagedRows(SqliteDatabase& database)
      : query_(database, "SELECT id, parent, name, gone_at, points FROM history WHERE id >= ?1 ORDER BY id") {
  }

  bool is_whole() const { return is_whole_; }

  // Goes to the next row. False at the end.
  bool step() {
    while (!try_step(next_)) {
      is_whole_ = false;
      const auto readable = readable_after(next_);
      if (!readable) return false;
      next_ = *readable;
    }
    if (is_open_) next_ = query_.number(0) + 1;
    return is_open_;
  }
  const SqliteStatement& row() const { return query_; }
  void skip() { is_whole_ = false; }

 private:
  // Goes to the first row from this id on, or to the next one; to the end if there is none. False if it
  // cannot be read.
  bool try_step(std::int64_t id) {
    try {
      if (!is_open_) query_.bind(1, id);
      is_open_ = query_.step();
      return true;
    } catch (const SqliteError& exception) {
      if (!is_damage(exception)) throw;
      close();
      return false;
    }
  }

  void close() {
    query_.reset();
    is_open_ = false;
  }

  // A damaged page holds many rows: the id at which what is readable begins again.
  std::optional<std::int64_t> readable_after(std::int64_t id) {
    constexpr std::int64_t gap_max = std::numeric_limits<std::int64_t>::max() / 4;
    const auto is_readable = [&](std::int64_t from) {
      const bool is_read = try_step(from);
      close();
      return is_read;
    };
    std::int64_t gap = 1;
    while (!is_readable(id + gap)) {
      gap *= 2;
      if (gap > gap_max) return std::nullopt;
    }
    std::int64_t unreadable = id + gap / 2;
    std::int64_t readable = id + gap;
    while (readable - unreadable > 1) {
      const std::int64_t middle = unreadable + (readable - unreadable) / 2;
      (is_readable(middle) ? readable : unreadable) = middle;
    }
    return readable;
  }

  SqliteStatement query_;
  std::int64_t next_ = 0;
  bool is_open_ = false;
  bool is_whole_ = true;
};

// Adds the rows to an empty table.
void copy_rows(DamagedRows& from, SqliteDatabase& to) {
  SqliteStatement add(to, "INSERT OR IGNORE INTO history VALUES(?1, ?2, ?3, 0, 0, 0, ?4, ?5)");
  while (from.step()) {
    const SqliteStatement& row = from.row();
    if (!decode_points(row.blob(4))) {
      from.skip();
      continue;
    }
    const SqliteStatement::Use use(add, row.number(0), row.number(1), row.blob(2));
    if (!row.is_null(3)) add.bind(4, row.number(3));
    add.bind(5, row.blob(4));
    add.run();
  }
  to.exec(add_root_if_missing);
  to.exec(erase_unreachable);
}

// A query for the rows that match `rest`, and the row that it returns.
std::string select_history(std::string_view rest) {
  return std::string("SELECT id, name, drive, inode, birth, points FROM history WHERE ").append(rest);
}

HistoryRow read_history_row(const SqliteStatement& row) {
  return {row.number(0),
          std::string(row.blob(1)),
          {row.number(2), row.number<std::uint64_t>(3), row.number<std::uint32_t>(4)},
          std::string(row.blob(5))};
}

}  // namespace

void create_history_tables(SqliteDatabase& database) { database.exec(tables); }

void drop_history_tables(SqliteDatabase& database) { database.exec("DROP TABLE history"); }

bool has_history_tables(SqliteDatabase& database) {
  return database.number("SELECT count(*) FROM sqlite_master WHERE name = 'history'") > 0;
}

std::int64_t history_since(SqliteDatabase& database) {
  return number_setting(database, history_since_key, 0);
}

bool is_history_full(SqliteDatabase& database) {
  const std::string counts = find_setting(database, history_counts_key).value_or("");
  return !counts.empty() && !counts.ends_with(" 0");
}

CopiedHistory copy_history(const std::filesystem::path& from, SqliteDatabase& to) {
  std::error_code failure;
  if (!std::filesystem::exists(from, failure) && !failure) return {};
  if (is_empty_file(from)) return {.is_whole = false};
  std::optional<SqliteDatabase> source;
  try {
    source.emplace(from.native(), SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, checksum_vfs());
    if (!has_history_tables(*source)) return {};
  } catch (const SqliteError& exception) {
    if (!is_damage(exception)) throw;
    return {.is_whole = false};
  }
  create_history_tables(to);
  DamagedRows rows(*source);
  copy_rows(rows, to);
  std::uint64_t directories = 0;
  std::uint64_t points = 0;
  std::optional<std::int64_t> since;
  {
    SqliteStatement kept(to, "SELECT points FROM history");
    for (; kept.step(); ++directories) {
      const auto found = decode_points(kept.blob(0)).value_or(HistoryPoints());
      points += found.size();
      if (!found.empty()) since = std::min(since.value_or(found.front().at), found.front().at);
    }
  }
  if (!since) {
    drop_history_tables(to);
    return {.is_whole = rows.is_whole()};
  }
  put_setting(to, history_since_key, std::to_string(*since));
  put_setting(to, history_counts_key, fmt::format("{} {} 0", directories, points));
  return {.is_any = true, .is_whole = rows.is_whole()};
}

HistoryStore::HistoryStore(SqliteDatabase& database)
    : database_(database),
      find_(database, select_history("parent = ?1 AND name = ?2")),
      all_children_(database, select_history("parent = ?1 ORDER BY name")),
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
  return find_.find(read_history_row, parent, name);
}

std::optional<HistoryRow> HistoryStore::find_path(std::string_view path) {
  auto row = find(parent_of_root, "");
  for (tracker::ComponentCursor at(path); row && at.next();) row = find(row->id, at.component());
  return row;
}

void HistoryStore::open(std::int64_t parent) {
  all_children_.reset();
  all_children_.bind(1, parent);
  step();
}

void HistoryStore::step() {
  row_.reset();
  if (all_children_.step()) row_ = read_history_row(all_children_);
}

std::vector<HistoryRow> HistoryStore::children(std::int64_t parent, const std::optional<std::string>& after,
                                               std::size_t count_max) {
  const std::string_view from = after ? std::string_view(*after) : std::string_view();
  return children_.read_all(read_history_row, parent, from, !after, count_max);
}

std::int64_t HistoryStore::add(std::int64_t parent, const HistoryRow& row) {
  const HistoryIdentity& identity = row.identity;
  add_.run(parent, row.name, identity.drive, identity.inode, identity.birth, row.points);
  return sqlite3_last_insert_rowid(database_.handle());
}

bool HistoryStore::update(const HistoryRow& row, std::optional<std::int64_t> gone_at) {
  const HistoryIdentity& identity = row.identity;
  const SqliteStatement::Use use(update_, row.id, identity.drive, identity.inode, identity.birth, row.points);
  if (gone_at) update_.bind(6, *gone_at);
  return update_.run() > 0;
}

void HistoryStore::move(std::int64_t id, std::int64_t parent, std::string_view name) {
  move_.run(id, parent, name);
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

std::optional<std::int64_t> HistoryStore::first_gone() { return first_gone_.find_number(); }

HistoryPoints HistoryStore::points_of(const HistoryRow& row) {
  auto points = decode_points(row.points);
  if (!points) throw SqliteError("a history cannot be read", SQLITE_CORRUPT);
  return *std::move(points);
}

}  // namespace spoor::scanner
