#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "scanner/database/sqlite.h"
#include "scanner/history/history_point.h"
#include "scanner/history/history_store.h"
#include "scanner/store/usage_database.h"

namespace spoor::scanner {

// Reads the history of a database that has one.
//
// Not thread-safe. `database` must outlive it. Failures are SqliteError.
class HistoryReader {
 public:
  explicit HistoryReader(SqliteDatabase& database);

  // When the history begins.
  std::int64_t since() const { return since_; }
  // Whether directories were refused a history because of a bound.
  bool is_full() const { return is_full_; }

  std::optional<HistoryRow> find(std::string_view path);

  // Goes to the first child, by name.
  void open(std::int64_t parent);
  // Nothing after the last one.
  const std::optional<HistoryRow>& row() const { return row_; }
  void step();

 private:
  std::int64_t since_ = 0;
  bool is_full_ = false;
  SqliteStatement find_;
  SqliteStatement children_;
  std::optional<HistoryRow> row_;
};

struct UsageHistory {
  std::optional<base::WallTime> recorded_since;  // nothing: none is kept of any directory
  std::optional<base::WallTime> as_of;           // the start of the last scan
  bool is_full = false;                          // as HistoryReader::is_full()
  HistoryPoints points;                          // of the directory; empty if none is kept of it
};

// The points of the directory, from the one that holds at `since` on, the newest `count_max` of them. `path`
// as for query_usage().
base::Result<UsageHistory> query_history(UsageDatabase& database, std::string_view path,
                                         std::optional<base::WallTime> since, std::size_t count_max);

}  // namespace spoor::scanner
