// Reads the changes of a range of scans from the database, and joins them over the drives.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "scanner/database/sqlite.h"
#include "scanner/feed/change_feed.h"

namespace spoor::scanner {

// The scans after `since` up to `until`, and the drives by their ids.
struct FeedScope {
  std::uint64_t since = 0;
  std::uint64_t until = 0;
  std::vector<std::int64_t> drives;
};

// Reports the changes of these scans on these drives in the order of a walk: each directory, its files, if
// `range.files`, then all below it, by name; from the beginning, or after the path and the file of the range.
//
// Throws SqliteError. Works in the transaction that is open on the database.
void read_feed(SqliteDatabase& database, const FeedScope& scope, const FeedRange& range,
               const std::function<bool(const FeedEntry&)>& on_entry);

}  // namespace spoor::scanner
