// Reads the changes of a range of scans from the database, and joins them over the drives.
#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "scanner/feed/change_feed.h"
#include "scanner/feed/file_feed_reader.h"
#include "scanner/store/directory_store.h"

namespace spoor::scanner {

// The scans after `since` up to `until`, and the drives by their ids.
struct FeedScope {
  std::uint64_t since = 0;
  std::uint64_t until = 0;
  std::vector<std::int64_t> drives;
};

// Reports the changes of these scans on these drives in the order of a walk: each directory, its files, if
// `files`, then all below it, by name. Existence refers to the last committed scan.
//
// Not thread-safe. Throws SQLite::Exception. Works in the transaction that is open on the database; all
// references must outlive it.
class FeedReader {
 public:
  FeedReader(SQLite::Database& database, FeedScope scope, bool files,
             const std::function<bool(const FeedEntry&)>& on_entry);

  // Starts at the beginning, or after this path and this file in it.
  base::Result<> read(const std::optional<std::string>& after, const std::string& after_file);

 private:
  // The changes of a path by the id of the drive: bits of Change, and the last scan that found them.
  struct Found {
    std::uint64_t scan = 0;
    std::map<std::int64_t, unsigned> bits;
  };
  using Rows = std::vector<DirectoryOnDrive>;  // of a path, one for each drive that has it

  base::Result<> resume(std::string_view after, const std::string& after_file);
  base::Result<> report(const std::string& path, const Found& found);
  base::Result<bool> judge(const Found& found, FeedEntry& entry, Rows& rows);
  base::Result<> report_whole(const std::string& top, std::uint64_t scan, Rows rows,
                              std::optional<std::string_view> after, const std::string& after_file);
  base::Result<> report_files(const FeedEntry& directory, const Rows& rows, const std::string& after);
  base::Result<Rows> find_below(const Rows& rows, std::string_view name);
  base::Result<std::optional<DirectoryRow>> find(std::int64_t drive, std::string_view path);
  Found look_up(std::string_view path);
  bool has_drive(std::int64_t id) const;

  SQLite::Database& database_;
  const FeedScope scope_;
  const std::function<bool(const FeedEntry&)>& on_entry_;
  DirectoryStore store_;
  std::optional<FileFeedReader> files_;  // if files are reported
  std::optional<std::string> whole_;     // last one reported with all below it, changed or not
  bool is_over_ = false;
};

}  // namespace spoor::scanner
