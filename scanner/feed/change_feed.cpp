#include "scanner/feed/change_feed.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "scanner/database/sqlite.h"
#include "scanner/errors.h"
#include "scanner/feed/file_feed_reader.h"
#include "scanner/store/change_log.h"
#include "scanner/store/directory_store.h"
#include "scanner/store/link_corrections.h"
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

// The scans after `since` up to `until`, and the drives by their ids.
struct FeedScope {
  std::uint64_t since = 0;
  std::uint64_t until = 0;
  std::vector<std::int64_t> drives;
};

bool has(unsigned bits, Change change) { return (bits & static_cast<unsigned>(change)) != 0; }

// Computes walk_key() in SQL.
constexpr const char* changes_in_walk_order = R"sql(
SELECT CAST(replace(path, '/', char(0)) AS BLOB) AS walk_key, drive, max(scan),
       max(change & 1) | max(change & 2) | max(change & 4)
FROM changes WHERE scan > ?1 AND scan <= ?2 AND (?3 IS NULL OR walk_key > ?3)
GROUP BY walk_key, drive ORDER BY walk_key, drive)sql";

// One lookup by primary key for each scan and drive, not a search through all changes.
constexpr const char* changes_of_path = R"sql(
SELECT drive, max(scan), max(change & 1) | max(change & 2) | max(change & 4) FROM changes
WHERE scan IN (SELECT scan FROM feed WHERE scan > ?1 AND scan <= ?2) AND drive IN (SELECT id FROM drives)
  AND path = ?3
GROUP BY drive)sql";

// A directory whose children are being reported.
struct Level {
  std::size_t path_bytes = 0;
  JoinedChildren children;
};

// Reports the changes of these scans on these drives in the order of a walk, joined over the drives: each
// directory, its files, if `files`, then all below it, by name. Existence refers to the last committed scan.
//
// Throws SqliteError. Works in the transaction that is open on the database.
class FeedReader {
 public:
  FeedReader(SqliteDatabase& database, const FeedScope& scope, bool files,
             const std::function<bool(const FeedEntry&)>& on_entry)
      : database_(database), scope_(scope), on_entry_(on_entry), directories_(database) {
    if (files) files_.emplace(database, scope.since, scope.until);
  }

  // All that is below the root, or only what follows this path and this file in it.
  void read_everything(const std::string& after, const std::string& after_file) {
    Rows roots;
    for (const std::int64_t drive : scope_.drives) {
      if (const auto row = directories_.find_path(drive, "")) roots.push_back({row->id, true});
    }
    report_whole("", scope_.until, std::move(roots), after, after_file);
  }

  // Starts at the beginning, or after this path and this file in it.
  void read(const std::optional<std::string>& after, const std::string& after_file) {
    if (after) resume(*after, after_file);
    if (is_over_) return;
    const std::string last = walk_key(after.value_or(""));
    SqliteStatement query(database_, changes_in_walk_order, scope_.since, scope_.until);
    if (after) query.bind(3, last);
    std::string path;
    Found found;
    while (query.step()) {
      const std::int64_t drive = query.number(1);
      if (!has_drive(drive)) continue;
      std::string next = path_of_key(query.blob(0));
      if (!found.bits.empty() && next != path) {
        report(path, std::exchange(found, {}));
        if (is_over_) return;
      }
      path = std::move(next);
      found.bits[drive] = query.number<unsigned>(3);
      found.scan = std::max(found.scan, query.number<std::uint64_t>(2));
    }
    if (!found.bits.empty()) report(path, found);
  }

 private:
  // The changes of a path by the id of the drive: bits of Change, and the last scan that found them.
  struct Found {
    std::uint64_t scan = 0;
    std::map<std::int64_t, unsigned> bits;
  };
  using Rows = std::vector<DirectoryOnDrive>;  // of a path, one for each drive that has it

  // Continues with the directory that was being reported whole, if any, or with the files of `after`.
  void resume(std::string_view after, const std::string& after_file) {
    std::vector<std::string_view> tops{""};
    for (tracker::ComponentCursor at(after); at.next();) tops.push_back(at.prefix());
    for (const std::string_view top : tops) {
      const Found found = look_up(top);
      if (found.bits.empty()) continue;
      FeedEntry entry{.path = std::string(top)};
      Rows rows;
      if (judge(found, entry, rows))
        return report_whole(entry.path, found.scan, std::move(rows), after, after_file);
      if (top == after) return report_files(entry, rows, after_file);
    }
  }

  Found look_up(std::string_view path) {
    SqliteStatement query(database_, changes_of_path, scope_.since, scope_.until, path);
    Found found;
    while (query.step()) {
      const std::int64_t drive = query.number(0);
      if (!has_drive(drive)) continue;
      found.bits[drive] = query.number<unsigned>(2);
      found.scan = std::max(found.scan, query.number<std::uint64_t>(1));
    }
    return found;
  }

  bool has_drive(std::int64_t id) const {
    return std::ranges::find(scope_.drives, id) != scope_.drives.end();
  }

  void report(const std::string& path, const Found& found) {
    if (whole_ && is_below(path, *whole_)) return;
    FeedEntry entry{.path = path};
    Rows rows;
    const bool is_whole = judge(found, entry, rows);
    if (!entry.is_there && !entry.is_deleted) return;
    entry.is_file_now = !entry.is_there && files_ && is_file_now(path);
    is_over_ = !on_entry_(entry);
    if (is_over_) return;
    if (is_whole) return report_whole(path, found.scan, std::move(rows), {}, {});
    report_files(entry, rows, {});
  }

  void report_files(const FeedEntry& directory, const Rows& rows, const std::string& after) {
    if (!files_ || is_over_) return;
    is_over_ = !files_->read(directory, rows, after, [&](const FeedEntry& file) {
      const bool is_hidden =
          scope_.drives.size() > 1 && file.is_deleted && !file.is_there && is_kept_directory(file.path);
      return is_hidden || on_entry_(file);
    });
  }

  // Whether a drive has a directory there that is not new: the deletion of a file that another drive had at
  // the same path would delete it.
  bool is_kept_directory(const std::string& path) {
    const Found found = look_up(path);
    return std::ranges::any_of(scope_.drives, [&](std::int64_t drive) {
      const auto its = found.bits.find(drive);
      const bool is_new = its != found.bits.end() && has(its->second, Change::created);
      return !is_new && directories_.find_path(drive, path);
    });
  }

  // Fills the entry and its rows. Returns whether everything below it has to be reported: it was deleted from
  // one drive, and the names of what only that drive had below it are no longer known.
  bool judge(const Found& found, FeedEntry& entry, Rows& rows) {
    entry.scan = found.scan;
    entry.is_new = true;
    bool is_kept = false;  // on some drive, with what was below it
    for (const std::int64_t drive : scope_.drives) {
      const auto its = found.bits.find(drive);
      const unsigned bits = its == found.bits.end() ? 0 : its->second;
      entry.is_deleted = entry.is_deleted || has(bits, Change::deleted);
      const auto row = directories_.find_path(drive, entry.path);
      if (!row) continue;
      rows.push_back({row->id, has(bits, Change::created)});
      is_kept = is_kept || !(has(bits, Change::deleted) && has(bits, Change::created));
      entry.is_new = entry.is_new && has(bits, Change::created);
    }
    entry.is_there = !rows.empty();
    const bool is_whole = entry.is_deleted && is_kept;
    entry.is_new = entry.is_there && (entry.is_new || is_whole);
    return is_whole;
  }

  bool is_file_now(const std::string& path) {
    return std::ranges::any_of(scope_.drives, [&](std::int64_t drive) {
      const auto parent = directories_.find_path(drive, tracker::parent_path(path));
      return parent && files_->has(parent->id, path.substr(path.rfind('/') + 1));
    });
  }

  // Reports everything below `top` as new; with `after`, the top or a path below it, only what follows it.
  void report_whole(const std::string& top, std::uint64_t scan, Rows rows,
                    std::optional<std::string_view> after, const std::string& after_file) {
    whole_ = top;
    for (DirectoryOnDrive& row : rows) row.is_new = true;
    FeedEntry entry{.path = top, .scan = scan, .is_there = true, .is_new = true};
    std::vector<Level> open;  // the path to the current directory, with the remaining children of each level
    std::string_view below_top = after.value_or(top).substr(top.size());
    if (below_top.starts_with('/')) below_top.remove_prefix(1);
    for (tracker::ComponentCursor at(below_top); at.next();) {
      const std::string name(at.component());
      open.push_back({entry.path.size(), JoinedChildren(directories_, rows, name)});
      rows = find_below(rows, name);
      entry.path = tracker::join_path(entry.path, name);
    }
    report_files(entry, rows, after_file);
    open.push_back({entry.path.size(), JoinedChildren(directories_, rows)});
    while (!open.empty() && !is_over_) {
      JoinedChildren& children = open.back().children;
      entry.path.resize(open.back().path_bytes);
      const std::string* const name = children.peek();
      if (name == nullptr) {
        open.pop_back();
        continue;
      }
      Rows below;
      const std::string its_name = *name;
      children.take(its_name, [&](std::size_t, const DirectoryRow& row) { below.push_back({row.id, true}); });
      entry.path = tracker::join_path(entry.path, its_name);
      is_over_ = !on_entry_(entry);
      report_files(entry, below, {});
      open.push_back({entry.path.size(), JoinedChildren(directories_, below)});
    }
  }

  Rows find_below(const Rows& rows, std::string_view name) {
    Rows found;
    for (const DirectoryOnDrive& parent : rows) {
      if (const auto row = directories_.find(parent.id, name)) found.push_back({row->id, true});
    }
    return found;
  }

  SqliteDatabase& database_;
  const FeedScope& scope_;
  const std::function<bool(const FeedEntry&)>& on_entry_;
  DirectoryTables directories_;
  std::optional<FileFeedReader> files_;  // if files are reported
  std::optional<std::string> whole_;     // last one reported with all below it, changed or not
  bool is_over_ = false;
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
    FeedReader reader(handle, scope, range.files, on_entry);
    if (range.everything) {
      reader.read_everything(range.after.value_or(""), range.after_file);
    } else {
      reader.read(range.after, range.after_file);
    }
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
