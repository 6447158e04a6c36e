#include "scanner/store/directory_store.h"

#include <SQLiteCpp/Statement.h>
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "scanner/errors.h"
#include "scanner/store/sqlite_guard.h"

namespace spoor::scanner {
namespace {

constexpr const char* entries_column = "entries_signature";

// A database that no scan of this version has opened for writing lacks the newest column.
bool has_entries(SQLite::Database& database) {
  SQLite::Statement query(database, "SELECT 1 FROM pragma_table_info('directories') WHERE name = ?");
  query.bind(1, entries_column);
  return query.executeStep();
}

std::string select(bool has_entries, const char* rest) {
  return fmt::format("SELECT {}, {} FROM directories WHERE {}", directory_columns,
                     has_entries ? entries_column : "0", rest);
}

std::string replace(bool has_entries) {
  return fmt::format(
      "REPLACE INTO directories(parent, {}{}) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, "
      "?14, ?15, ?16, ?17, ?18, ?19{})",
      directory_columns, has_entries ? fmt::format(", {}", entries_column) : "", has_entries ? ", ?20" : "");
}

// Stored in the column of the state.
constexpr std::int32_t racy_bit = 16;

void bind_unsigned(SqliteStatement& statement, int index, std::uint64_t value) {
  statement.bind(index, static_cast<std::int64_t>(value));
}

int bind_totals(SqliteStatement& statement, int index, const Totals& totals) {
  bind_unsigned(statement, index++, totals.files);
  bind_unsigned(statement, index++, totals.bytes);
  bind_unsigned(statement, index++, totals.allocated);
  statement.bind(index++, totals.mtime_ns);
  return index;
}

// In the order of directory_columns; put() binds the newest column.
void bind_row(SqliteStatement& statement, int index, const DirectoryRow& row) {
  statement.bind_blob(index++, row.name);
  statement.bind(index++, row.id);
  bind_unsigned(statement, index++, row.inode);
  statement.bind(index++, static_cast<std::int32_t>(row.birth));
  statement.bind(index++, static_cast<std::int32_t>(row.state) | (row.is_racy ? racy_bit : 0));
  bind_unsigned(statement, index++, row.read_scan);
  bind_unsigned(statement, index++, row.signature);
  index = bind_totals(statement, index, row.own);
  index = bind_totals(statement, index, row.subtree);
  bind_unsigned(statement, index++, row.directories);
  bind_unsigned(statement, index++, row.pending);
  bind_unsigned(statement, index++, row.mount_points);
}

std::uint64_t read_unsigned(const SqliteStatement& statement, int index) {
  return static_cast<std::uint64_t>(statement.number(index));
}

Totals read_totals(const SqliteStatement& statement, int index) {
  return {read_unsigned(statement, index), read_unsigned(statement, index + 1),
          read_unsigned(statement, index + 2), statement.number(index + 3)};
}

}  // namespace

const char* const directory_columns =
    "name, id, inode, birth, state, read_scan, signature, own_files, own_bytes, own_allocated, own_mtime_ns, "
    "files, bytes, allocated, mtime_ns, directories, pending, mount_points";

DirectoryRow read_directory_row(const SqliteStatement& statement) {
  DirectoryRow row;
  row.name = statement.blob(0);
  row.id = statement.number(1);
  row.inode = read_unsigned(statement, 2);
  row.birth = static_cast<std::uint32_t>(statement.number(3));
  row.state = static_cast<DirectoryState>(statement.number(4) & ~racy_bit);
  row.is_racy = (statement.number(4) & racy_bit) != 0;
  row.read_scan = read_unsigned(statement, 5);
  row.signature = read_unsigned(statement, 6);
  row.own = read_totals(statement, 7);
  row.subtree = read_totals(statement, 11);
  row.directories = read_unsigned(statement, 15);
  row.pending = read_unsigned(statement, 16);
  row.mount_points = read_unsigned(statement, 17);
  return row;
}

void add_entries_column(SQLite::Database& database) {
  if (has_entries(database)) return;
  database.exec(
      fmt::format("ALTER TABLE directories ADD COLUMN {} INTEGER NOT NULL DEFAULT 0", entries_column));
}

DirectoryStore::DirectoryStore(SQLite::Database& database, std::int64_t next_id)
    : database_(database),
      has_entries_(has_entries(database)),
      find_(database, select(has_entries_, "parent = ?1 AND name = ?2")),
      children_(database, select(has_entries_, "parent = ?1 AND name > ?2 ORDER BY name LIMIT ?3")),
      newest_below_(database, "SELECT mtime_ns FROM directories WHERE parent = ?1"),
      put_(database, replace(has_entries_)),
      erase_(database, "DELETE FROM directories WHERE parent = ?1 AND name = ?2"),
      parents_below_(database, "SELECT id FROM directories WHERE parent = ?1 AND directories > 0"),
      erase_children_(database, "DELETE FROM directories WHERE parent = ?1"),
      next_id_(next_id) {}

DirectoryRow DirectoryStore::read_row(const SqliteStatement& statement) {
  DirectoryRow row = read_directory_row(statement);
  row.entries = read_unsigned(statement, 18);
  return row;
}

template <class Action>
auto DirectoryStore::guarded_store(std::string_view what, Action&& action) {
  return guarded(what, database_.getFilename(), std::forward<Action>(action));
}

base::Result<std::optional<DirectoryRow>> DirectoryStore::find(std::int64_t parent, std::string_view name) {
  return guarded_store("look up a directory", [&]() -> std::optional<DirectoryRow> {
    const SqliteStatement::Use use(find_);
    find_.bind(1, parent);
    find_.bind_blob(2, name);
    if (!find_.step()) return std::nullopt;
    return read_row(find_);
  });
}

base::Result<std::vector<DirectoryRow>> DirectoryStore::children(std::int64_t parent,
                                                                 const std::optional<std::string>& after,
                                                                 std::size_t count_max) {
  return guarded_store("list directories", [&] {
    const SqliteStatement::Use use(children_);
    children_.bind(1, parent);
    // Only a root has the empty name: every other name sorts after it.
    children_.bind_blob(2, after ? std::string_view(*after) : std::string_view());
    children_.bind(3, static_cast<std::int64_t>(count_max));
    std::vector<DirectoryRow> rows;
    while (children_.step()) rows.push_back(read_row(children_));
    return rows;
  });
}

base::Result<std::int64_t> DirectoryStore::newest_below(const DirectoryRow& row) {
  return guarded_store("look up directories", [&] {
    const SqliteStatement::Use use(newest_below_);
    newest_below_.bind(1, row.id);
    std::int64_t newest = std::numeric_limits<std::int64_t>::min();
    while (newest_below_.step()) newest = std::max(newest, newest_below_.number(0));
    return newest;
  });
}

base::Result<> DirectoryStore::put(std::int64_t parent, const DirectoryRow& row) {
  return guarded_store("write a directory", [&] {
    const SqliteStatement::Use use(put_);
    put_.bind(1, parent);
    bind_row(put_, 2, row);
    if (has_entries_) bind_unsigned(put_, 20, row.entries);
    put_.run();
  });
}

base::Result<std::uint64_t> DirectoryStore::erase(std::int64_t parent, const DirectoryRow& row,
                                                  const std::stop_token& stop) {
  auto below = erase_below(row, stop);
  if (!below) return below;
  return guarded_store("remove a directory", [&] {
    const SqliteStatement::Use use(erase_);
    erase_.bind(1, parent);
    erase_.bind_blob(2, row.name);
    return *below + erase_.run();
  });
}

base::Result<std::uint64_t> DirectoryStore::erase_below(const DirectoryRow& row,
                                                        const std::stop_token& stop) {
  std::uint64_t erased = 0;
  std::vector<std::int64_t> parents;
  if (row.directories > 0) parents.push_back(row.id);
  while (!parents.empty()) {
    if (stop.stop_requested()) return interrupted_error();
    const std::int64_t parent = parents.back();
    parents.pop_back();
    const auto children_erased = erase_children(parent, parents);
    if (!children_erased) return children_erased;
    erased += *children_erased;
  }
  return erased;
}

// Adds the children that have children themselves to `parents`.
base::Result<std::uint64_t> DirectoryStore::erase_children(std::int64_t parent,
                                                           std::vector<std::int64_t>& parents) {
  return guarded_store("remove directories", [&] {
    const SqliteStatement::Use use_parents(parents_below_);
    const SqliteStatement::Use use_erase(erase_children_);
    parents_below_.bind(1, parent);
    while (parents_below_.step()) parents.push_back(parents_below_.number(0));
    erase_children_.bind(1, parent);
    return erase_children_.run();
  });
}

}  // namespace spoor::scanner
