// The files of directories in a scan, if scan.file_feed is on.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "scanner/store/change_log.h"
#include "scanner/store/directory_row.h"
#include "scanner/store/file_store.h"
#include "scanner/store/files.h"

namespace spoor::scanner {

// Stores the files of the directories that a scan reads, and records which of them changed. Files of a new
// directory are not recorded: all of them are new. Failures are those of FileStore.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it.
class FileFeed {
 public:
  // `is_first`: no earlier scan stored files, so no consumer reads the file changes of this one.
  FileFeed(SQLite::Database& database, ChangeLog& changes, bool is_first)
      : store_(database), changes_(changes), is_first_(is_first) {}

  // Adds the files of a directory for which none are stored.
  base::Result<> add(std::int64_t directory, const Files& files) { return store_.add(directory, files); }

  // Updates the files of a directory that was read before; `before` is its stored row. Returns false if it
  // changed and its previous files are unknown: it was unreadable for the first scan that stored files.
  base::Result<bool> update(const DirectoryRow& before, const Files& files, bool differs);

  base::Result<> erase(std::int64_t directory) { return store_.erase(directory); }

 private:
  FileStore store_;
  ChangeLog& changes_;
  const bool is_first_;
};

}  // namespace spoor::scanner
