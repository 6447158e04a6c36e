#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <memory>

namespace spoor::scanner {

// Joins writes that follow each other in a file of SQLite: it writes a log in pieces of 24 and 4096 bytes,
// and a database page by page. Functions return SQLite's codes, and fail where the write of the file does;
// the bytes then stay in the buffer, and the next flush tries again.
//
// The owner flushes before whatever must see the bytes: a sync, a read of them, the size of the file.
//
// Not thread-safe, as a file of SQLite.
class WriteBuffer {
 public:
  static constexpr int bytes_max = 64 * 1024;  // SQLite's file system layer cannot write 128 KiB at once

  int write(sqlite3_file* file, const void* from, int bytes, sqlite3_int64 offset);
  int flush(sqlite3_file* file);
  int flush_if_overlapping(sqlite3_file* file, int bytes, sqlite3_int64 offset);

 private:
  std::unique_ptr<std::byte[]> bytes_;  // allocated by the first write
  int size_ = 0;
  sqlite3_int64 offset_ = 0;  // in the file
};

}  // namespace spoor::scanner
