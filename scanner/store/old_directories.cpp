#include "scanner/store/old_directories.h"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/core.h>

#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "base/byte_codec.h"
#include "scanner/store/database_files.h"
#include "scanner/store/database_schema.h"
#include "scanner/store/directory_names.h"
#include "scanner/store/directory_store.h"
#include "scanner/store/file_store.h"

namespace spoor::scanner {
namespace {

constexpr const char* columns =
    "name, id, inode, birth, state, read_scan, signature, own_files, own_bytes, own_allocated, own_mtime_ns, "
    "files, bytes, allocated, mtime_ns, directories, pending, mount_points, entries_signature, owners, "
    "parent";
constexpr int parent_column = 20;

// In the column of the state.
constexpr std::int32_t racy_bit = 16;

constexpr const char* copied_key = "directories_copied";  // Copied, encoded
constexpr std::size_t copied_at_once = 20'000;

std::string select(std::string_view rest) {
  return fmt::format("SELECT {} FROM directories WHERE {}", columns, rest);
}

Totals read_totals(const SqliteStatement& statement, int index) {
  return {statement.number<std::uint64_t>(index), statement.number<std::uint64_t>(index + 1),
          statement.number<std::uint64_t>(index + 2), statement.number(index + 3)};
}

DirectoryRow read_row(const SqliteStatement& statement) {
  DirectoryRow row;
  row.name = statement.blob(0);
  row.id = statement.number(1);
  row.inode = statement.number<std::uint64_t>(2);
  row.birth = statement.number<std::uint32_t>(3);
  row.state = static_cast<DirectoryState>(statement.number(4) & ~racy_bit);
  row.is_racy = (statement.number(4) & racy_bit) != 0;
  row.is_read = statement.number(5) != 0;
  row.signature = statement.number<std::uint64_t>(6);
  row.own = read_totals(statement, 7);
  row.subtree = read_totals(statement, 11);
  row.directories = statement.number<std::uint64_t>(15);
  row.pending = statement.number<std::uint64_t>(16);
  row.mount_points = statement.number<std::uint64_t>(17);
  row.entries = statement.number<std::uint64_t>(18);
  row.owners = statement.blob(19);
  return row;
}

// How far the copy is: up to this parent and name.
struct Copied {
  std::int64_t last_scan = 0;  // of those in the database when it began
  std::int64_t parent = std::numeric_limits<std::int64_t>::min();
  std::string name = {};
};

std::int64_t last_scan(SQLite::Database& database) {
  return database.execAndGet("SELECT ifnull(max(id), 0) FROM scans").getInt64();
}

std::optional<Copied> read_copied(SQLite::Database& database) {
  SqliteStatement query(database, "SELECT value FROM settings WHERE key = ?", SqliteText{copied_key});
  if (!query.step()) return std::nullopt;
  base::ByteReader in(query.blob(0));
  Copied copied{.last_scan = static_cast<std::int64_t>(in.u64()),
                .parent = static_cast<std::int64_t>(in.u64())};
  copied.name = in.raw(in.remaining());
  return in.ok() ? std::optional(std::move(copied)) : std::nullopt;
}

void put_copied(SQLite::Database& database, const Copied& copied) {
  base::ByteWriter out;
  out.u64(static_cast<std::uint64_t>(copied.last_scan));
  out.u64(static_cast<std::uint64_t>(copied.parent));
  out.raw(copied.name);
  put_setting(database, copied_key, out.bytes());
}

// A copy that was begun is of no use if the old version has scanned since. One that has not begun needs its
// space.
void begin_copy(SQLite::Database& database) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  const auto copied = read_copied(database);
  if (!OldDirectories::are_in(database) || (copied && copied->last_scan == last_scan(database))) return;
  std::error_code failure;
  const std::uint64_t bytes = std::filesystem::file_size(database.getFilename(), failure);
  if (!failure && !has_space_for(database.getFilename(), bytes / 10 * 6))
    throw SQLite::Exception("the file cannot grow", SQLITE_FULL);
  database.exec(
      "DROP TABLE IF EXISTS names; DROP TABLE IF EXISTS newer; DROP TABLE IF EXISTS copied_directories");
  create_directory_tables(database, "copied_directories");
  put_copied(database, {.last_scan = last_scan(database)});
  transaction.commit();
}

// Returns whether all are copied. Rows of unread directories had no id.
bool copy_some(SQLite::Database& database) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  if (!OldDirectories::are_in(database)) return true;  // another process was faster
  DirectoryNames names(database);
  SqliteStatement put(database, "REPLACE INTO copied_directories(id, row, owners) VALUES(?1, ?2, ?3)");
  std::int64_t next_id = number_setting(database, next_id_key, 1);
  Copied copied = read_copied(database).value();
  const Copied from = copied;
  SqliteStatement query(database, select("(parent, name) > (?1, ?2) ORDER BY parent, name"), from.parent,
                        std::string_view(from.name));
  NameChanges its_names;
  bool is_over = false;
  for (std::size_t count = 0; count < copied_at_once; ++count) {
    is_over = !query.step();
    if (is_over) break;
    const std::int64_t parent = query.number(parent_column);
    if (parent != copied.parent) {
      names.apply(copied.parent, std::exchange(its_names, {}));
      copied.parent = parent;
    }
    DirectoryRow row = read_row(query);
    if (row.id == 0) row.id = next_id++;
    its_names[row.name] = named(row);
    copied.name = row.name;
    const std::string bytes = encode_row(row);
    const SqliteStatement::Use use(put, row.id, std::string_view(bytes), std::string_view(row.owners));
    put.run();
  }
  names.apply(copied.parent, its_names);
  query.reset();
  put_setting(database, next_id_key, std::to_string(next_id));
  put_copied(database, copied);
  require_space(database);
  transaction.commit();
  return is_over;
}

}  // namespace

OldDirectories::OldDirectories(SQLite::Database& database)
    : find_(database, select("parent = ?1 AND name = ?2")),
      children_(database, select("parent = ?1 AND name > ?2 ORDER BY name LIMIT ?3")) {}

bool OldDirectories::are_in(SQLite::Database& database) {
  const int version = database.execAndGet("PRAGMA user_version").getInt();
  return version == 4 || version == 5;
}

std::optional<DirectoryRow> OldDirectories::find(std::int64_t parent, std::string_view name) {
  const SqliteStatement::Use use(find_, parent, name);
  if (!find_.step()) return std::nullopt;
  return read_row(find_);
}

std::vector<DirectoryRow> OldDirectories::children(std::int64_t parent,
                                                   const std::optional<std::string>& after,
                                                   std::size_t count_max) {
  // Only a root has the empty name: every other name sorts after it.
  const SqliteStatement::Use use(children_, parent, after ? std::string_view(*after) : std::string_view(),
                                 count_max);
  std::vector<DirectoryRow> rows;
  while (children_.step()) rows.push_back(read_row(children_));
  return rows;
}

void copy_old_directories(SQLite::Database& database) {
  begin_copy(database);
  while (!copy_some(database)) {
    // The log is used again from its beginning, unless someone reads it.
    static_cast<void>(database.tryExec("PRAGMA wal_checkpoint(PASSIVE)"));
  }
}

void replace_old_directories(SQLite::Database& database) {
  database.exec("DROP TABLE directories; ALTER TABLE copied_directories RENAME TO directories");
  erase_setting(database, copied_key);
  if (database.tableExists("files")) create_files_trigger(database);
}

}  // namespace spoor::scanner
