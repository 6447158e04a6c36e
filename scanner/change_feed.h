// The changes that scans found, as consumers read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "scanner/usage_database.h"

namespace spoor::scanner {

// One logical directory in which something changed, or one such file, over the drives of the range.
struct FeedEntry {
  std::string path;        // "" is the root
  std::uint64_t scan = 0;  // the last one that found it
  bool is_file = false;    // or anything else that is no directory
  // It is there, and its own entries changed; `is_new`: all of it is new.
  bool is_there = false;
  bool is_new = false;
  // It was deleted, with all below it, files included. Also where it is there: another one took its place, or
  // only another drive has it still. Then what was below the old one is gone, and all that is below the new
  // one is named, too.
  bool is_deleted = false;
};

struct FeedRange {
  std::uint64_t since = 0;             // the last scan whose changes are known already
  std::optional<std::uint64_t> until;  // nothing: the last scan there is
  std::optional<std::string> after;    // goes on behind this path, that of a directory of the same range
  bool files = false;                  // tells files, too
  std::string drive = {};              // only what this one has and had, by its path; empty: all drives
  std::string after_file = {};         // goes on behind this file of that directory; empty: with its files

  // Goes on behind this entry of the same range.
  void go_on_behind(const FeedEntry& entry);
};

// The number of the last scan; 0 before the first.
base::Result<std::uint64_t> latest_scan(UsageDatabase& database);

// Drawn when the database was made: scans of another one have other numbers.
base::Result<std::string> feed_id(UsageDatabase& database);

// Whether the last scan kept the files of directories: only then can be told which of them changed.
base::Result<bool> keeps_files(UsageDatabase& database);

// Calls `on_entry` for each directory once, in the order of a walk, until it gives false: a directory, then
// its files, where these are asked for, then what is below it, by name. Files are told of directories that
// are there. Returns the last scan that the range holds; or nothing, without a call, where
// the changes since then are no longer kept, or never were, as for a drive that no scan has read: then
// everything has to be taken anew. `since` has to be a number of this very database. `should_stop` is asked
// again and again: true ends it with Errc::interrupted.
//
// A range may be read in parts while scans commit: what these change is theirs to tell, as always for what
// was found after `until`.
base::Result<std::optional<std::uint64_t>> read_changes(UsageDatabase& database, const FeedRange& range,
                                                        const std::function<bool(const FeedEntry&)>& on_entry,
                                                        const std::function<bool()>& should_stop = {});

// The same for a caller that may take its time with each entry: it is called between two looks at the
// database, of as many entries as take about `page_bytes` in memory, so that it does not keep the log of the
// database from being emptied. Where a scan forgets the changes between two calls, that is an error.
base::Result<std::optional<std::uint64_t>> read_changes_in_pages(
    UsageDatabase& database, FeedRange range, std::size_t page_bytes,
    const std::function<bool(const FeedEntry&)>& on_entry);

}  // namespace spoor::scanner
