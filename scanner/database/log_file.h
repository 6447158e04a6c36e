#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <memory>

namespace spoor::scanner {

// Joins writes that follow each other in a file: SQLite writes a log in pieces of 24 and 4096 bytes.
// Functions return SQLite's codes. After a write of the file has failed, all that would write fail with its
// code: SQLite rolls back, and the bytes must not be written later.
//
// Not thread-safe, as a file of SQLite.
class WriteBuffer {
 public:
  static constexpr int bytes_max = 64 * 1024;  // SQLite's file system layer cannot write 128 KiB at once

  int write(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset);
  int flush(sqlite3_file* file);
  int flush_if_overlapping(sqlite3_file* file, int bytes, sqlite3_int64 offset);

 private:
  int write_through(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset);

  std::unique_ptr<std::byte[]> bytes_;  // allocated by the first write
  int size_ = 0;
  sqlite3_int64 offset_ = 0;  // in the file
  int failure_ = SQLITE_OK;
};

// The bytes that a log file takes beside the file of the system's VFS.
extern const int log_file_bytes;

// As xOpen of a VFS, for a write-ahead log: its writes are joined (WriteBuffer). Requires
// `PRAGMA synchronous = FULL`: the sync of a commit writes what is joined, before other connections look for
// it. Without syncs they still find all frames of a commit, but a crash of the process may lose it.
//
// Database files must not be opened so: SQLite writes pages back from the log and lets other connections read
// them, without a sync in between if it could not write back all of them.
int open_log_file(sqlite3_vfs& system, const char* name, sqlite3_file* file, int flags, int* flags_out);

}  // namespace spoor::scanner
