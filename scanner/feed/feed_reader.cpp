#include "scanner/feed/feed_reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "scanner/feed/file_feed_reader.h"
#include "scanner/store/change_log.h"
#include "scanner/store/directory_store.h"
#include "scanner/store/link_corrections.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

bool has(unsigned bits, Change change) { return (bits & static_cast<unsigned>(change)) != 0; }

bool is_below(std::string_view path, std::string_view top) {
  if (top.empty()) return !path.empty();
  return path.size() > top.size() && path.starts_with(top) && path[top.size()] == '/';
}

// The path of a walk_key().
std::string path_of(std::string key) {
  std::replace(key.begin(), key.end(), '\0', '/');
  return key;
}

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

std::vector<std::int64_t> ids_of(const std::vector<DirectoryOnDrive>& rows) {
  std::vector<std::int64_t> ids;
  ids.reserve(rows.size());
  for (const DirectoryOnDrive& row : rows) ids.push_back(row.id);
  return ids;
}

// Existence refers to the last committed scan.
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
      if (const auto row = find(drive, "")) roots.push_back({row->id, true});
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
      std::string next = path_of(std::string(query.blob(0)));
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
      return !is_new && find(drive, path);
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
      const auto row = find(drive, entry.path);
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
      const auto parent = find(drive, tracker::parent_path(path));
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
      open.push_back({entry.path.size(), JoinedChildren(directories_, ids_of(rows), name)});
      rows = find_below(rows, name);
      entry.path = tracker::join_path(entry.path, name);
    }
    report_files(entry, rows, after_file);
    open.push_back({entry.path.size(), JoinedChildren(directories_, ids_of(rows))});
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
      open.push_back({entry.path.size(), JoinedChildren(directories_, ids_of(below))});
    }
  }

  Rows find_below(const Rows& rows, std::string_view name) {
    Rows found;
    for (const DirectoryOnDrive& parent : rows) {
      if (const auto row = directories_.find(parent.id, name)) found.push_back({row->id, true});
    }
    return found;
  }

  std::optional<DirectoryRow> find(std::int64_t drive, std::string_view path) {
    return directories_.find_path(drive, path).row;
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

void read_feed(SqliteDatabase& database, const FeedScope& scope, const FeedRange& range,
               const std::function<bool(const FeedEntry&)>& on_entry) {
  FeedReader reader(database, scope, range.files, on_entry);
  if (range.everything) return reader.read_everything(range.after.value_or(""), range.after_file);
  reader.read(range.after, range.after_file);
}

}  // namespace spoor::scanner
