#pragma once

#include <sqlite3.h>

namespace spoor::scanner {

// The bytes that a log file takes beside the file of the system's VFS.
extern const int log_file_bytes;

// As xOpen of a VFS, for a write-ahead log: its writes are joined (write_buffer.h). Requires
// `PRAGMA synchronous = FULL`: the sync of a commit writes what is joined, before other connections look for
// it. Without syncs they still find all frames of a commit, but a crash of the process may lose it.
//
// Database files must not be opened so: SQLite writes pages back from the log and lets other connections read
// them, without a sync in between if it could not write back all of them.
int open_log_file(sqlite3_vfs& system, const char* name, sqlite3_file* file, int flags, int* flags_out);

}  // namespace spoor::scanner
