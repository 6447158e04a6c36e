// How the changes of files are read from the database and joined over the drives, a directory at a time.
#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "scanner/change_feed.h"
#include "scanner/file_store.h"

namespace spoor::scanner {

// A directory as one drive has it.
struct DirectoryOnDrive {
  std::int64_t id = 0;
  bool is_new = false;  // and all its files with it
};

// Tells the files that changed in the scans after `since` up to `until`.
//
// Not thread-safe. Throws SQLite::Exception. Works in the transaction that is open on the database, which
// must outlive it.
class FileFeedReader {
 public:
  FileFeedReader(SQLite::Database& database, std::uint64_t since, std::uint64_t until);

  // Those of one directory, over all drives that have it, by name, behind the name `after`. False as soon as
  // `on_entry` gives that.
  base::Result<bool> read(const FeedEntry& directory, const std::vector<DirectoryOnDrive>& on_drives,
                          const std::string& after, const std::function<bool(const FeedEntry&)>& on_entry);

 private:
  SQLite::Database& database_;
  const std::uint64_t since_;
  const std::uint64_t until_;
  FileStore store_;
};

}  // namespace spoor::scanner
