#include "scanner/store/database_schema.h"

#include <fmt/core.h>

#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "base/byte_codec.h"
#include "scanner/database/database_files.h"
#include "scanner/errors.h"
#include "scanner/store/directory_names.h"
#include "scanner/store/directory_store.h"
#include "scanner/store/file_store.h"

namespace spoor::scanner {
namespace {

constexpr int application_id = scan_database_id;
constexpr int version = 7;
constexpr int version_of_1_0 = 4;

// Unsigned 64-bit numbers are stored as the signed ones of the same bits.
//
// In `changes`, `path` is logical, and `change` are bits of Change; `feed` has the number of changes of each
// scan.
constexpr const char* tables = R"sql(
CREATE TABLE settings(
  key TEXT PRIMARY KEY, value BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE drives(
  id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE
);
CREATE TABLE scans(
  id INTEGER PRIMARY KEY, started_at_ns INTEGER NOT NULL, finished_at_ns INTEGER NOT NULL,
  cycle INTEGER NOT NULL, walked_everything INTEGER NOT NULL, partial INTEGER NOT NULL, reason TEXT NOT NULL,
  dirs_walked INTEGER NOT NULL, dirs_skipped INTEGER NOT NULL, dirs_changed INTEGER NOT NULL,
  dirs_new INTEGER NOT NULL, dirs_deleted INTEGER NOT NULL,
  files INTEGER NOT NULL, bytes INTEGER NOT NULL, errors INTEGER NOT NULL,
  audited INTEGER NOT NULL, missed INTEGER NOT NULL
);
CREATE TABLE changes(
  scan INTEGER NOT NULL, drive INTEGER NOT NULL, path BLOB NOT NULL, change INTEGER NOT NULL,
  PRIMARY KEY(scan, drive, path)
) WITHOUT ROWID;
CREATE TABLE feed(
  scan INTEGER PRIMARY KEY, entries INTEGER NOT NULL
);
INSERT INTO settings VALUES('feed_since', '1');
INSERT INTO settings VALUES('feed_id', lower(hex(randomblob(16))));
)sql";

// Which directories hold which files that have several hard links (link_store.h). A row of `links` with the
// directory 0 has the size that was read last. In these paths, each '/' is a 0 byte. `link_changes` has rows
// only during the transaction of a scan.
constexpr const char* link_tables = R"sql(
CREATE TABLE link_directories(
  id INTEGER PRIMARY KEY, drive INTEGER NOT NULL, path BLOB NOT NULL, UNIQUE(drive, path)
);
CREATE TABLE links(
  drive INTEGER NOT NULL, inode INTEGER NOT NULL, directory INTEGER NOT NULL,
  bytes INTEGER NOT NULL, allocated INTEGER NOT NULL, owner INTEGER,
  PRIMARY KEY(drive, inode, directory)
) WITHOUT ROWID;
CREATE INDEX links_of_directory ON links(directory) WHERE directory > 0;
CREATE TABLE link_changes(
  drive INTEGER NOT NULL, inode INTEGER NOT NULL, PRIMARY KEY(drive, inode)
) WITHOUT ROWID;
CREATE TABLE link_corrections(
  drive INTEGER NOT NULL, path BLOB NOT NULL, bytes INTEGER NOT NULL, allocated INTEGER NOT NULL,
  PRIMARY KEY(drive, path)
) WITHOUT ROWID;
)sql";

constexpr const char* peers_table = R"sql(
CREATE TABLE peers(
  name TEXT NOT NULL, instance TEXT NOT NULL, cycle INTEGER NOT NULL, home TEXT NOT NULL, standing INTEGER NOT NULL,
  silent_ms INTEGER NOT NULL, run INTEGER NOT NULL, PRIMARY KEY(name, instance)
) WITHOUT ROWID)sql";

// Cursors by name become peers by name and instance. A name without an instance was never read, and one
// without a cycle had two trackers: the next read of either is a gap, as before. A row "ADDRESS\nNAME" has
// the home of that name, one of an address alone that of the name with its instance.
constexpr const char* peers_of_1_0 = R"sql(
  SELECT peer, instance, iif(instance GLOB '*[1-9a-f]*', cycle, 0),
    coalesce((SELECT substr(home.peer, 1, instr(home.peer, char(10)) - 1) FROM cursors AS home
      WHERE instr(home.peer, char(10)) > 0
        AND substr(home.peer, instr(home.peer, char(10)) + 1) = cursors.peer),
      (SELECT home.peer FROM cursors AS home
      WHERE instr(home.peer, ':') > 0 AND instr(home.peer, char(10)) = 0 AND home.instance = cursors.instance), ''),
    iif(instance GLOB '*[1-9a-f]*' AND cycle = 0, 2, 0), 0, 0
  FROM cursors WHERE instr(peer, ':') = 0
)sql";

std::int64_t pragma(SqliteDatabase& database, const char* name) {
  return database.number(fmt::format("PRAGMA {}", name));
}

bool is_empty(SqliteDatabase& database) {
  return pragma(database, "application_id") == 0 && pragma(database, "user_version") == 0 &&
         database.number("SELECT count(*) FROM sqlite_master") == 0;
}

void set_version(SqliteDatabase& database) {
  database.exec(fmt::format("PRAGMA user_version = {}", version));
}

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

std::int64_t last_scan_of(SqliteDatabase& database) {
  return database.number("SELECT ifnull(max(id), 0) FROM scans");
}

std::optional<Copied> read_copied(SqliteDatabase& database) {
  const auto bytes = find_setting(database, copied_key);
  if (!bytes) return std::nullopt;
  base::ByteReader in(*bytes);
  Copied copied{.last_scan = static_cast<std::int64_t>(in.u64()),
                .parent = static_cast<std::int64_t>(in.u64())};
  copied.name = in.raw(in.remaining());
  return in.ok() ? std::optional(std::move(copied)) : std::nullopt;
}

void put_copied(SqliteDatabase& database, const Copied& copied) {
  base::ByteWriter out;
  out.u64(static_cast<std::uint64_t>(copied.last_scan));
  out.u64(static_cast<std::uint64_t>(copied.parent));
  out.raw(copied.name);
  put_setting(database, copied_key, out.bytes());
}

// A copy that was begun is of no use if the old version has scanned since. One that has not begun needs its
// space.
void begin_copy(SqliteDatabase& database) {
  SqliteTransaction transaction(database, SqliteTransaction::Kind::writing);
  const auto copied = read_copied(database);
  if (!is_migratable(database) || (copied && copied->last_scan == last_scan_of(database))) return;
  std::error_code failure;
  const std::uint64_t bytes = std::filesystem::file_size(database.file(), failure);
  if (!failure && !has_space_for(database.file(), bytes / 10 * 6))
    throw SqliteError("the file cannot grow", SQLITE_FULL);
  database.exec(
      "DROP TABLE IF EXISTS names; DROP TABLE IF EXISTS newer; DROP TABLE IF EXISTS copied_directories");
  create_directory_tables(database, "copied_directories");
  put_copied(database, {.last_scan = last_scan_of(database)});
  transaction.commit();
}

// Returns whether all are copied. Rows of unread directories had no id.
bool copy_some(SqliteDatabase& database) {
  SqliteTransaction transaction(database, SqliteTransaction::Kind::writing);
  if (!is_migratable(database)) return true;  // another process was faster
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
    put.run(row.id, std::string_view(bytes), std::string_view(row.owners));
  }
  names.apply(copied.parent, its_names);
  query.reset();
  put_setting(database, next_id_key, std::to_string(next_id));
  put_copied(database, copied);
  require_space(database);
  transaction.commit();
  return is_over;
}

// Writes the directories of 1.0.0 into tables of this version, some thousand in each transaction: the
// database stays one of 1.0.0, and a migration that is killed goes on where it was.
void copy_old_directories(SqliteDatabase& database) {
  begin_copy(database);
  while (!copy_some(database)) {
    // The log is used again from its beginning, unless someone reads it.
    sqlite3_wal_checkpoint_v2(database.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  }
}

// Puts the copy in their place.
void finish_migration(SqliteDatabase& database) {
  database.exec("DROP TABLE directories; ALTER TABLE copied_directories RENAME TO directories");
  erase_setting(database, copied_key);
  if (database.has_table("files")) create_files_trigger(database);
  database.exec(fmt::format("{}; INSERT INTO peers {}; DROP TABLE cursors", peers_table, peers_of_1_0));
  erase_setting(database, "roll_position");
  set_version(database);
}

}  // namespace

bool is_migratable(SqliteDatabase& database) {
  return pragma(database, "application_id") == application_id &&
         pragma(database, "user_version") == version_of_1_0;
}

// The version is part of the transaction: after a kill or a failure, the file is the old or the new one.
base::Result<> prepare_schema(SqliteDatabase& database) {
  if (is_migratable(database)) copy_old_directories(database);
  if (!is_empty(database) && !is_migratable(database)) return check_schema(database);
  SqliteTransaction transaction(database, SqliteTransaction::Kind::writing);
  if (is_empty(database)) {
    for (const char* const sql : {tables, link_tables, peers_table}) database.exec(sql);
    create_directory_tables(database);
    database.exec(fmt::format("PRAGMA application_id = {}", application_id));
    set_version(database);
  } else if (is_migratable(database)) {
    finish_migration(database);
  } else {
    return check_schema(database);  // another process was faster
  }
  transaction.commit();
  return {};
}

const char* peers_query(SqliteDatabase& database) {
  return is_migratable(database) ? peers_of_1_0
                                 : "SELECT name, instance, cycle, home, standing, silent_ms, run FROM peers";
}

base::Error foreign_error(std::string_view file) {
  return {Errc::database_unusable, fmt::format("{} is not a scan database of Spoor; move it aside", file)};
}

base::Result<> check_schema(SqliteDatabase& database) {
  if (pragma(database, "application_id") != application_id) return foreign_error(database.file());
  const std::int64_t found = pragma(database, "user_version");
  if (found != version && !is_migratable(database)) {
    return base::Error(
        Errc::database_unusable,
        fmt::format(
            "the scan database {} has the format version {}, this program knows {}; use the Spoor that "
            "wrote it, or move it aside: the next scan walks everything and rebuilds it",
            database.file(), found, version));
  }
  return {};
}

OldDirectories::OldDirectories(SqliteDatabase& database)
    : find_(database, select("parent = ?1 AND name = ?2")),
      children_(database, select("parent = ?1 AND name > ?2 ORDER BY name LIMIT ?3")) {}

std::optional<DirectoryRow> OldDirectories::find(std::int64_t parent, std::string_view name) {
  return find_.find(read_row, parent, name);
}

std::vector<DirectoryRow> OldDirectories::children(std::int64_t parent,
                                                   const std::optional<std::string>& after,
                                                   std::size_t count_max) {
  // Only a root has the empty name: every other name sorts after it.
  return children_.read_all(read_row, parent, after ? std::string_view(*after) : std::string_view(),
                            count_max);
}

}  // namespace spoor::scanner
