#include "scanner/feed/change_feed.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "scanner/database/sqlite.h"
#include "scanner/errors.h"
#include "scanner/feed/feed_reader.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

std::uint64_t number(SqliteDatabase& database, const char* query) {
  return static_cast<std::uint64_t>(database.number(query));
}

std::uint64_t last_scan(SqliteDatabase& database) {
  return number(database, "SELECT ifnull(max(id), 0) FROM scans");
}

constexpr std::uint64_t no_files = std::numeric_limits<std::int64_t>::max();

// Changes of files are stored for all scans after this one, which knows all files once it has ended.
std::uint64_t files_since(SqliteDatabase& database) {
  static_assert(no_files == 9223372036854775807U);
  const std::uint64_t since =
      number(database,
             "SELECT ifnull((SELECT CAST(value AS INTEGER) FROM settings WHERE key = 'files_since'), "
             "9223372036854775807)");
  return since > last_scan(database) ? no_files : since;
}

// The ids of the drives of the range; none if no scan has read the drive that it names.
std::vector<std::int64_t> drives_of(SqliteDatabase& database, const FeedRange& range) {
  return SqliteStatement(database, "SELECT id FROM drives WHERE ?1 = x'' OR path = ?1")
      .read_all([](const SqliteStatement& row) { return row.number(0); }, range.drive);
}

// Makes SQLite call `should_stop` repeatedly, even during a long query. At most one for a database.
class StopWatch {
 public:
  StopWatch(SqliteDatabase& database, const std::function<bool()>& should_stop)
      : database_(database), should_stop_(should_stop) {
    constexpr int steps = 10'000;  // SQLite instructions: some milliseconds
    if (should_stop_) sqlite3_progress_handler(database_.handle(), steps, ask, this);
  }
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;
  ~StopWatch() { sqlite3_progress_handler(database_.handle(), 0, nullptr, nullptr); }

  bool has_stopped() const { return has_stopped_; }

 private:
  static int ask(void* self) {
    auto& watch = *static_cast<StopWatch*>(self);
    watch.has_stopped_ = watch.should_stop_();
    return watch.has_stopped_ ? 1 : 0;
  }

  SqliteDatabase& database_;
  const std::function<bool()>& should_stop_;
  bool has_stopped_ = false;
};

}  // namespace

base::Result<std::uint64_t> latest_scan(UsageDatabase& database) {
  return guarded("look up the last scan", database.handle(), [&] { return last_scan(database.handle()); });
}

base::Result<std::string> feed_id(UsageDatabase& database) {
  return guarded("read a setting", database.handle(),
                 [&] { return database.handle().text("SELECT value FROM settings WHERE key = 'feed_id'"); });
}

base::Result<bool> keeps_files(UsageDatabase& database) {
  return guarded("read a setting", database.handle(),
                 [&] { return files_since(database.handle()) != no_files; });
}

void FeedRange::go_on_behind(const FeedEntry& entry) {
  after = entry.is_file ? tracker::parent_path(entry.path) : entry.path;
  after_file = entry.is_file ? entry.path.substr(entry.path.rfind('/') + 1) : "";
}

base::Result<std::optional<std::uint64_t>> read_changes(UsageDatabase& database, const FeedRange& range,
                                                        const std::function<bool(const FeedEntry&)>& on_entry,
                                                        const std::function<bool()>& should_stop) {
  SqliteDatabase& handle = database.handle();
  if (should_stop && should_stop()) return interrupted_error();
  const StopWatch watch(handle, should_stop);
  auto read = guarded("read the changes", handle, [&]() -> std::optional<std::uint64_t> {
    const SqliteTransaction one_view(
        handle, SqliteTransaction::Kind::reading);  // a scan may commit between two queries
    const std::uint64_t latest = last_scan(handle);
    std::uint64_t kept_since =
        number(handle, "SELECT CAST(value AS INTEGER) FROM settings WHERE key = 'feed_since'");
    if (range.files) kept_since = std::max(kept_since, files_since(handle));
    const std::uint64_t until = std::min(range.until.value_or(latest), latest);
    const std::uint64_t since = range.everything ? until : range.since;
    if (latest == 0 || (since < kept_since && !range.everything) || since > until) return std::nullopt;
    auto drives = drives_of(handle, range);
    if (drives.empty() && !range.drive.empty()) return std::nullopt;
    const FeedScope scope{since, until, std::move(drives)};
    read_feed(handle, scope, range, on_entry);
    return until;
  });
  if (!read && watch.has_stopped()) return interrupted_error();
  return read;
}

base::Result<std::optional<std::uint64_t>> read_changes_in_pages(
    UsageDatabase& database, FeedRange range, std::size_t page_bytes,
    const std::function<bool(const FeedEntry&)>& on_entry) {
  for (bool is_first = true;; is_first = false) {
    std::vector<FeedEntry> page;
    std::size_t bytes = 0;
    auto read = read_changes(database, range, [&](const FeedEntry& entry) {
      page.push_back(entry);
      bytes += sizeof entry + entry.path.size();
      return bytes < page_bytes;
    });
    if (!read) return read;
    if (!*read) {
      if (is_first) return read;
      return base::Error(std::make_error_code(std::errc::resource_unavailable_try_again),
                         "a scan deleted the changes while they were read: read them again");
    }
    if (!std::ranges::all_of(page, on_entry) || bytes < page_bytes) return read;
    range.until = *read;
    range.go_on_behind(page.back());
  }
}

}  // namespace spoor::scanner
