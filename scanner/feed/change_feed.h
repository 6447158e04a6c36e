// Reads the changes that scans found, for consumers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "scanner/store/usage_database.h"

namespace spoor::scanner {

// One changed logical directory or file, joined over the drives of the range.
struct FeedEntry {
  std::string path;        // "" is the root
  std::uint64_t scan = 0;  // the last one that found it
  bool is_file = false;    // or any other non-directory
  // It exists, and its own entries changed; `is_new`: all of it is new.
  bool is_there = false;
  bool is_new = false;
  // It was deleted, with all below it, files included. Together with `is_there`: it was replaced, or only
  // another drive still has it. Then everything below the old one is deleted, and everything below the new
  // one is reported, too.
  bool is_deleted = false;
  // A deleted directory whose name is a file's now. Only with FeedRange::files.
  bool is_file_now = false;
};

struct FeedRange {
  std::uint64_t since = 0;                  // the last scan whose changes the caller has
  std::optional<std::uint64_t> until = {};  // nothing: the last scan
  std::optional<std::string> after = {};    // starts after this path, a directory of the same range
  bool files = false;                       // reports files, too
  std::string drive = {};                   // only changes on the drive of this path; empty: all drives
  std::string after_file = {};              // in `after`, starts after this file; empty: at its first file
  // Instead of the changes: all that is below the root, as new, with `until` as the scan.
  bool everything = false;

  // Makes the range start after this entry, which belongs to it.
  void go_on_behind(const FeedEntry& entry);
};

// The number of the last committed scan; 0 before the first.
base::Result<std::uint64_t> latest_scan(UsageDatabase& database);

// The random id of the database: scan numbers of another database have no meaning in this one.
base::Result<std::string> feed_id(UsageDatabase& database);

// Whether the last scan stored the files of directories, as changes of files require.
base::Result<bool> keeps_files(UsageDatabase& database);

// Calls `on_entry` for each directory once, in the order of a walk, until it returns false: a directory, then
// its files, if `range.files`, then what is below it, by name. Files are reported for existing directories
// only; a file is not deleted if another drive has an older directory at its path. Returns the last scan of
// the range. Returns nothing, without a call, if the changes since then are no longer kept, or never were, as
// for a drive that no scan has read: then the consumer has to read everything. `since` must be a scan number
// of this database. `should_stop` is called repeatedly: true ends the function with Errc::interrupted.
//
// A range may be read in parts while scans commit. What these scans change, and all that is found after
// `until`, belongs to later ranges.
base::Result<std::optional<std::uint64_t>> read_changes(UsageDatabase& database, const FeedRange& range,
                                                        const std::function<bool(const FeedEntry&)>& on_entry,
                                                        const std::function<bool()>& should_stop = {});

// The same for a slow `on_entry`: it is called between transactions, each of which reads about `page_bytes`
// of entries into memory. So a slow caller does not prevent the checkpoint of the database log. Fails with
// std::errc::resource_unavailable_try_again if a scan deletes the changes between two transactions.
base::Result<std::optional<std::uint64_t>> read_changes_in_pages(
    UsageDatabase& database, FeedRange range, std::size_t page_bytes,
    const std::function<bool(const FeedEntry&)>& on_entry);

}  // namespace spoor::scanner
