#include "scanner/store/database_schema.h"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/core.h>

#include "scanner/errors.h"
#include "scanner/store/directory_store.h"
#include "scanner/store/old_directories.h"
#include "scanner/store/sqlite.h"

namespace spoor::scanner {
namespace {

constexpr int application_id = scan_database_id;
constexpr int version = 7;
constexpr int first_with_peers = 5;

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
// without a cycle had two trackers: the next read of either is a gap, as before. Rows whose names have a ':'
// are addresses.
constexpr const char* peers_of_4 = R"sql(
  SELECT peer, instance, iif(instance GLOB '*[1-9a-f]*', cycle, 0),
    coalesce((SELECT substr(home.peer, 1, instr(home.peer, char(10)) - 1) FROM cursors AS home
      WHERE instr(home.peer, char(10)) > 0
        AND substr(home.peer, instr(home.peer, char(10)) + 1) = cursors.peer),
      (SELECT home.peer FROM cursors AS home
      WHERE instr(home.peer, ':') > 0 AND instr(home.peer, char(10)) = 0 AND home.instance = cursors.instance), ''),
    iif(instance GLOB '*[1-9a-f]*' AND cycle = 0, 2, 0), 0, 0
  FROM cursors WHERE instr(peer, ':') = 0
)sql";

int pragma(SQLite::Database& database, const char* name) {
  return database.execAndGet(fmt::format("PRAGMA {}", name)).getInt();
}

bool is_empty(SQLite::Database& database) {
  return pragma(database, "application_id") == 0 && pragma(database, "user_version") == 0 &&
         database.execAndGet("SELECT count(*) FROM sqlite_master").getInt() == 0;
}

void set_version(SQLite::Database& database) {
  database.exec(fmt::format("PRAGMA user_version = {}", version));
}

void finish_migration(SQLite::Database& database) {
  replace_old_directories(database);
  if (pragma(database, "user_version") < first_with_peers) {
    database.exec(fmt::format(
        "{}; INSERT INTO peers {}; DROP TABLE cursors; DELETE FROM settings WHERE key = 'roll_position'",
        peers_table, peers_of_4));
  }
  set_version(database);
}

}  // namespace

bool is_migratable(SQLite::Database& database) {
  return pragma(database, "application_id") == application_id && OldDirectories::are_in(database);
}

// The version is part of the transaction: after a kill or a failure, the file is the old or the new one.
base::Result<> prepare_schema(SQLite::Database& database) {
  if (is_migratable(database)) copy_old_directories(database);
  if (!is_empty(database) && !is_migratable(database)) return check_schema(database);
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
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

const char* peers_query(SQLite::Database& database) {
  return pragma(database, "user_version") < first_with_peers
             ? peers_of_4
             : "SELECT name, instance, cycle, home, standing, silent_ms, run FROM peers";
}

std::int64_t number_setting(SQLite::Database& database, const char* key, std::int64_t otherwise) {
  SqliteStatement query(database, "SELECT CAST(value AS INTEGER) FROM settings WHERE key = ?",
                        SqliteText{key});
  return query.step() ? query.number(0) : otherwise;
}

void erase_setting(SQLite::Database& database, std::string_view key) {
  SqliteStatement(database, "DELETE FROM settings WHERE key = ?", SqliteText{key}).run();
}

void put_setting(SQLite::Database& database, std::string_view key, std::string_view value) {
  SqliteStatement(database, "REPLACE INTO settings(key, value) VALUES(?, ?)", SqliteText{key}, value).run();
}

base::Error foreign_error(std::string_view file) {
  return {Errc::database_unusable, fmt::format("{} is not a scan database of Spoor; move it aside", file)};
}

base::Result<> check_schema(SQLite::Database& database) {
  if (pragma(database, "application_id") != application_id) return foreign_error(database.getFilename());
  const int found = pragma(database, "user_version");
  if (found != version && !is_migratable(database)) {
    return base::Error(
        Errc::database_unusable,
        fmt::format(
            "the scan database {} has the format version {}, this program knows {}; use the Spoor that "
            "wrote it, or move it aside: the next scan walks everything and rebuilds it",
            database.getFilename(), found, version));
  }
  return {};
}

}  // namespace spoor::scanner
