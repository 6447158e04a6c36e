// Reads the changes of files from the database, and joins them over the drives, a directory at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "scanner/database/sqlite.h"
#include "scanner/feed/change_feed.h"
#include "scanner/store/file_store.h"

namespace spoor::scanner {

// A directory on one drive.
struct DirectoryOnDrive {
  std::int64_t id = 0;
  bool is_new = false;  // and all its files with it
};

// Reports the files that changed in the scans after `since` up to `until`.
//
// Not thread-safe. Throws SqliteError. Works in the transaction that is open on the database, which
// must outlive it.
class FileFeedReader {
 public:
  FileFeedReader(SqliteDatabase& database, std::uint64_t since, std::uint64_t until);

  // Reports the changed files of one directory, joined over all drives that have it, by name, after the name
  // `after`. Stops and returns false when `on_entry` returns false.
  bool read(const FeedEntry& directory, const std::vector<DirectoryOnDrive>& on_drives,
            const std::string& after, const std::function<bool(const FeedEntry&)>& on_entry);

  // Whether the directory has a file of this name.
  bool has(std::int64_t directory, const std::string& name) {
    return StoredFiles(store_, directory).go_to(name);
  }

 private:
  SqliteDatabase& database_;
  const std::uint64_t since_;
  const std::uint64_t until_;
  FileStore store_;
};

}  // namespace spoor::scanner
