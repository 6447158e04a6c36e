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

// The children of a directory by name, joined over the drives that have it. All count as new.
class JoinedChildren {
 public:
  struct Child {
    std::string name;
    std::vector<DirectoryOnDrive> rows;
  };

  // Starts after the name `after`, if given.
  JoinedChildren(DirectoryStore& store, const std::vector<DirectoryOnDrive>& parents,
                 const std::optional<std::string>& after = std::nullopt) {
    for (const DirectoryOnDrive& parent : parents) on_drives_.emplace_back(store, parent.id, after);
  }

  // Nothing after the last one.
  base::Result<std::optional<Child>> next() {
    std::optional<Child> first;
    for (StoredChildren& children : on_drives_) {
      const auto row = children.peek();
      if (!row) return row.error();
      if (*row == nullptr || (first && first->name <= (*row)->name)) continue;
      first = Child{(*row)->name, {}};
    }
    if (!first) return first;
    for (StoredChildren& children : on_drives_) {
      const auto row = children.peek();
      if (!row) return row.error();
      if (*row == nullptr || (*row)->name != first->name) continue;
      first->rows.push_back({(*row)->id, true});
      children.pop();
    }
    return first;
  }

 private:
  std::vector<StoredChildren> on_drives_;
};

// A directory whose children are being reported.
struct Level {
  std::size_t path_bytes = 0;
  JoinedChildren children;
};

// Existence refers to the last committed scan.
class FeedReader {
 public:
  FeedReader(SQLite::Database& database, const FeedScope& scope, bool files,
             const std::function<bool(const FeedEntry&)>& on_entry)
      : database_(database), scope_(scope), on_entry_(on_entry), store_(database, 0) {
    if (files) files_.emplace(database, scope.since, scope.until);
  }

  // All that is below the root, or only what follows this path and this file in it.
  base::Result<> read_everything(const std::string& after, const std::string& after_file) {
    Rows roots;
    for (const std::int64_t drive : scope_.drives) {
      const auto row = find(drive, "");
      if (!row) return row.error();
      if (*row) roots.push_back({(*row)->id, true});
    }
    return report_whole("", scope_.until, std::move(roots), after, after_file);
  }

  // Starts at the beginning, or after this path and this file in it.
  base::Result<> read(const std::optional<std::string>& after, const std::string& after_file) {
    if (after) {
      if (const auto resumed = resume(*after, after_file); !resumed || is_over_) return resumed;
    }
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
        if (const auto reported = report(path, found); !reported || is_over_) return reported;
        found = {};
      }
      path = std::move(next);
      found.bits[drive] = query.number<unsigned>(3);
      found.scan = std::max(found.scan, query.number<std::uint64_t>(2));
    }
    return found.bits.empty() ? base::Result<>() : report(path, found);
  }

 private:
  // The changes of a path by the id of the drive: bits of Change, and the last scan that found them.
  struct Found {
    std::uint64_t scan = 0;
    std::map<std::int64_t, unsigned> bits;
  };
  using Rows = std::vector<DirectoryOnDrive>;  // of a path, one for each drive that has it

  // Continues with the directory that was being reported whole, if any, or with the files of `after`.
  base::Result<> resume(std::string_view after, const std::string& after_file) {
    std::vector<std::string_view> tops{""};
    for (tracker::ComponentCursor at(after); at.next();) tops.push_back(at.prefix());
    for (const std::string_view top : tops) {
      const Found found = look_up(top);
      if (found.bits.empty()) continue;
      FeedEntry entry{.path = std::string(top)};
      Rows rows;
      const auto is_whole = judge(found, entry, rows);
      if (!is_whole) return is_whole.error();
      if (*is_whole) return report_whole(entry.path, found.scan, std::move(rows), after, after_file);
      if (top == after) return report_files(entry, rows, after_file);
    }
    return {};
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

  base::Result<> report(const std::string& path, const Found& found) {
    if (whole_ && is_below(path, *whole_)) return {};
    FeedEntry entry{.path = path};
    Rows rows;
    const auto is_whole = judge(found, entry, rows);
    if (!is_whole) return is_whole.error();
    if (!entry.is_there && !entry.is_deleted) return {};
    if (!entry.is_there && files_) {
      const auto is_file = is_file_now(path);
      if (!is_file) return is_file.error();
      entry.is_file_now = *is_file;
    }
    is_over_ = !on_entry_(entry);
    if (is_over_) return {};
    if (*is_whole) return report_whole(path, found.scan, std::move(rows), {}, {});
    return report_files(entry, rows, {});
  }

  base::Result<> report_files(const FeedEntry& directory, const Rows& rows, const std::string& after) {
    if (!files_ || is_over_) return {};
    base::Result<> looked;
    const auto on_file = [&](const FeedEntry& file) {
      if (scope_.drives.size() > 1 && file.is_deleted && !file.is_there) {
        const auto is_kept = is_kept_directory(file.path);
        if (!is_kept) looked = is_kept.error();
        if (!is_kept || *is_kept) return is_kept.has_value();
      }
      return on_entry_(file);
    };
    const auto reported = files_->read(directory, rows, after, on_file);
    if (!looked) return looked;
    if (!reported) return reported.error();
    is_over_ = !*reported;
    return {};
  }

  // Whether a drive has a directory there that is not new: the deletion of a file that another drive had at
  // the same path would delete it.
  base::Result<bool> is_kept_directory(const std::string& path) {
    const Found found = look_up(path);
    for (const std::int64_t drive : scope_.drives) {
      const auto row = find(drive, path);
      if (!row) return row.error();
      const auto its = found.bits.find(drive);
      const bool is_new = its != found.bits.end() && has(its->second, Change::created);
      if (*row && !is_new) return true;
    }
    return false;
  }

  // Fills the entry and its rows. Returns whether everything below it has to be reported: it was deleted from
  // one drive, and the names of what only that drive had below it are no longer known.
  base::Result<bool> judge(const Found& found, FeedEntry& entry, Rows& rows) {
    entry.scan = found.scan;
    entry.is_new = true;
    bool is_kept = false;  // on some drive, with what was below it
    for (const std::int64_t drive : scope_.drives) {
      const auto its = found.bits.find(drive);
      const unsigned bits = its == found.bits.end() ? 0 : its->second;
      entry.is_deleted = entry.is_deleted || has(bits, Change::deleted);
      const auto row = find(drive, entry.path);
      if (!row) return row.error();
      if (!*row) continue;
      rows.push_back({(*row)->id, has(bits, Change::created)});
      is_kept = is_kept || !(has(bits, Change::deleted) && has(bits, Change::created));
      entry.is_new = entry.is_new && has(bits, Change::created);
    }
    entry.is_there = !rows.empty();
    const bool is_whole = entry.is_deleted && is_kept;
    entry.is_new = entry.is_there && (entry.is_new || is_whole);
    return is_whole;
  }

  base::Result<bool> is_file_now(const std::string& path) {
    for (const std::int64_t drive : scope_.drives) {
      const auto parent = find(drive, tracker::parent_path(path));
      if (!parent) return parent.error();
      if (!*parent) continue;
      const auto has = files_->has((*parent)->id, path.substr(path.rfind('/') + 1));
      if (!has || *has) return has;
    }
    return false;
  }

  // Reports everything below `top` as new; with `after`, the top or a path below it, only what follows it.
  base::Result<> report_whole(const std::string& top, std::uint64_t scan, Rows rows,
                              std::optional<std::string_view> after, const std::string& after_file) {
    whole_ = top;
    for (DirectoryOnDrive& row : rows) row.is_new = true;
    FeedEntry entry{.path = top, .scan = scan, .is_there = true, .is_new = true};
    std::vector<Level> open;  // the path to the current directory, with the remaining children of each level
    std::string_view below_top = after.value_or(top).substr(top.size());
    if (below_top.starts_with('/')) below_top.remove_prefix(1);
    for (tracker::ComponentCursor at(below_top); at.next();) {
      const std::string name(at.component());
      auto below = find_below(rows, name);
      if (!below) return below.error();
      open.push_back({entry.path.size(), JoinedChildren(store_, rows, name)});
      entry.path = tracker::join_path(entry.path, name);
      rows = std::move(*below);
    }
    if (auto reported = report_files(entry, rows, after_file); !reported) return reported;
    open.push_back({entry.path.size(), JoinedChildren(store_, rows)});
    while (!open.empty() && !is_over_) {
      auto child = open.back().children.next();
      if (!child) return child.error();
      entry.path.resize(open.back().path_bytes);
      if (!*child) {
        open.pop_back();
        continue;
      }
      entry.path = tracker::join_path(entry.path, (*child)->name);
      is_over_ = !on_entry_(entry);
      if (auto reported = report_files(entry, (*child)->rows, {}); !reported) return reported;
      open.push_back({entry.path.size(), JoinedChildren(store_, (*child)->rows)});
    }
    return {};
  }

  base::Result<Rows> find_below(const Rows& rows, std::string_view name) {
    Rows found;
    for (const DirectoryOnDrive& parent : rows) {
      const auto row = store_.find(parent.id, name);
      if (!row) return row.error();
      if (*row) found.push_back({(*row)->id, true});
    }
    return found;
  }

  base::Result<std::optional<DirectoryRow>> find(std::int64_t drive, std::string_view path) {
    auto row = store_.find(DirectoryStore::parent_of_root(drive), "");
    for (tracker::ComponentCursor at(path); row && *row && at.next();) {
      row = store_.find((*row)->id, at.component());
    }
    return row;
  }

  SQLite::Database& database_;
  const FeedScope& scope_;
  const std::function<bool(const FeedEntry&)>& on_entry_;
  DirectoryStore store_;
  std::optional<FileFeedReader> files_;  // if files are reported
  std::optional<std::string> whole_;     // last one reported with all below it, changed or not
  bool is_over_ = false;
};

}  // namespace

base::Result<> read_feed(SQLite::Database& database, const FeedScope& scope, const FeedRange& range,
                         const std::function<bool(const FeedEntry&)>& on_entry) {
  FeedReader reader(database, scope, range.files, on_entry);
  if (range.everything) return reader.read_everything(range.after.value_or(""), range.after_file);
  return reader.read(range.after, range.after_file);
}

}  // namespace spoor::scanner
