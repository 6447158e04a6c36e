// A layer between SQLite and its files. SQLite itself does not notice when bytes on a disk change: it reads
// other numbers, or finds fewer rows.
#pragma once

namespace SQLite {
class Database;
}

namespace spoor::scanner {

// The name by which SQLite knows it. With it, every page of a database file ends in a checksum over its
// content and its number (docs/formats.md): written with the page, and checked whenever it is read. A page
// that is another one than was written is SQLITE_CORRUPT, for the whole of the file. Logs and journals are
// SQLite's own, which checks them when it opens them.
//
// A file made without it is all damage, so is one that was written without it.
const char* checksum_vfs();

// To be called on each connection that may write, before anything else. Throws SQLite::Exception.
void reserve_checksums(SQLite::Database& database);

// At the end of each page, where its header (byte 20 of a database) says so.
constexpr int checksum_bytes = 8;

}  // namespace spoor::scanner
