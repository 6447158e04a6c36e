// A VFS for SQLite that verifies the pages of a database file. SQLite itself does not detect changed bytes on
// a disk: it reads other values, or finds fewer rows.
#pragma once

namespace spoor::scanner {

class SqliteDatabase;

// Registers the VFS and returns its name. Every page of a database file ends in a checksum over its content
// and its number (docs/formats.md), which is written with the page and verified at each read. A mismatch is
// SQLITE_CORRUPT, for the whole file. Logs and journals are SQLite's own, which checks them when it opens
// them.
//
// A file that was created or written without this VFS is SQLITE_CORRUPT, too.
const char* checksum_vfs();

// Call on each connection that may write, before any other statement. Throws SqliteError.
void reserve_checksums(SqliteDatabase& database);

// Reserved at the end of each page; byte 20 of the database header holds this number.
constexpr int checksum_bytes = 8;

}  // namespace spoor::scanner
