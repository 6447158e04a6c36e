// The files of directories in a scan, where scan.file_feed is on.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "scanner/change_log.h"
#include "scanner/directory_row.h"
#include "scanner/file_store.h"
#include "scanner/files.h"

namespace spoor::scanner {

// Keeps the files of the directories that a scan reads, and notes which of them changed. Those of a new
// directory are not noted: they are all new. Failures are those of FileStore.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it.
class FileFeed {
 public:
  // `is_first`: no scan before kept any, and nobody reads what this one finds.
  FileFeed(SQLite::Database& database, ChangeLog& changes, bool is_first)
      : store_(database), changes_(changes), is_first_(is_first) {}

  // Of a directory of which none are kept.
  base::Result<> add(std::int64_t directory, const Files& files) { return store_.add(directory, files); }

  // Of one that was read before: `before` is its row as it is stored. False where it changed, and nobody
  // knows which files it had: it was not readable when the first scan came to keep them.
  base::Result<bool> update(const DirectoryRow& before, const Files& files, bool differs);

  base::Result<> erase(std::int64_t directory) { return store_.erase(directory); }

 private:
  FileStore store_;
  ChangeLog& changes_;
  const bool is_first_;
};

}  // namespace spoor::scanner
