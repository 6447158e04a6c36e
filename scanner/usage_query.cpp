#include "scanner/usage_query.h"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>

#include <map>
#include <string>
#include <utility>

#include "scanner/sqlite_guard.h"
#include "tracker/path.h"

namespace spoor::scanner {
namespace {

// A logical directory: its rows on the drives that have it.
struct Place {
  std::string path;
  std::uint64_t depth = 0;
  bool above_complete = true;
  std::vector<DirectoryRow> rows;
};

UsageEntry sum_up(const Place& place) {
  UsageEntry entry;
  entry.path = place.path;
  entry.depth = place.depth;
  entry.complete = place.above_complete;
  Totals sum;
  for (const DirectoryRow& row : place.rows) {
    sum.add(row.subtree);
    entry.dirs += row.directories;
    entry.complete = entry.complete && row.pending == 0;
  }
  entry.files = sum.files;
  entry.bytes = sum.bytes;
  entry.allocated = sum.allocated;
  entry.mtime_ns = sum.mtime_ns;
  return entry;
}

class Query {
 public:
  explicit Query(SQLite::Database& database)
      : database_(database),
        find_(database, std::string("SELECT ") + directory_columns +
                            " FROM directories WHERE parent = ?1 AND name = ?2"),
        children_(database, std::string("SELECT ") + directory_columns +
                                " FROM directories WHERE parent = ?1 AND name > x'' ORDER BY name") {}

  // Nothing where no drive has the path.
  std::optional<Place> find(std::string_view path) {
    Place place;
    place.path = path;
    for (const std::int64_t drive : drive_ids()) {
      auto row = find_on(drive, path, place.above_complete);
      if (row) place.rows.push_back(std::move(*row));
    }
    if (place.rows.empty()) return std::nullopt;
    return place;
  }

  // Depth first, so that each comes behind its parent.
  std::vector<UsageEntry> below(const Place& top, std::uint64_t depth) {
    std::vector<UsageEntry> entries;
    std::vector<Place> open;
    if (depth > 0) push_children(open, top);
    while (!open.empty()) {
      const Place place = std::move(open.back());
      open.pop_back();
      entries.push_back(sum_up(place));
      if (place.depth < depth) push_children(open, place);
    }
    return entries;
  }

  std::optional<base::WallTime> as_of() {
    SQLite::Statement query(database_,
                            "SELECT started_at_ns FROM scans WHERE walked_everything OR NOT partial "
                            "ORDER BY id DESC LIMIT 1");
    if (!query.executeStep()) return std::nullopt;
    return base::WallTime(std::chrono::nanoseconds(query.getColumn(0).getInt64()));
  }

  bool last_scan_saw_everything() {
    SQLite::Statement query(database_,
                            "SELECT walked_everything OR NOT partial FROM scans ORDER BY id DESC LIMIT 1");
    return query.executeStep() && query.getColumn(0).getInt() != 0;
  }

 private:
  std::vector<std::int64_t> drive_ids() {
    SQLite::Statement query(database_, "SELECT id FROM drives");
    std::vector<std::int64_t> ids;
    while (query.executeStep()) ids.push_back(query.getColumn(0).getInt64());
    return ids;
  }

  // Steps down from the drive's root. Below an unread directory, nothing that is stored is certain,
  // and there may be more than that.
  std::optional<DirectoryRow> find_on(std::int64_t drive, std::string_view path, bool& above_complete) {
    auto row = find_row(DirectoryStore::parent_of_root(drive), "");
    for (tracker::ComponentCursor at(path); row && at.next();) {
      if (row->state == DirectoryState::unread) above_complete = false;
      row = find_row(row->id, at.component());
    }
    return row;
  }

  std::optional<DirectoryRow> find_row(std::int64_t parent, std::string_view name) {
    find_.reset();
    find_.bind(1, parent);
    find_.bind(2, name.empty() ? "" : name.data(), static_cast<int>(name.size()));
    if (!find_.executeStep()) return std::nullopt;
    return read_directory_row(find_);
  }

  void push_children(std::vector<Place>& open, const Place& place) {
    std::map<std::string, Place> by_name;
    bool complete = place.above_complete;
    for (const DirectoryRow& row : place.rows) {
      if (row.state == DirectoryState::unread) complete = false;
    }
    for (const DirectoryRow& row : place.rows) add_children(by_name, row);
    for (auto child = by_name.rbegin(); child != by_name.rend(); ++child) {
      child->second.path = tracker::join_path(place.path, child->first);
      child->second.depth = place.depth + 1;
      child->second.above_complete = complete;
      open.push_back(std::move(child->second));
    }
  }

  void add_children(std::map<std::string, Place>& by_name, const DirectoryRow& parent) {
    if (parent.directories == 0) return;
    children_.reset();
    children_.bind(1, parent.id);
    while (children_.executeStep()) {
      DirectoryRow row = read_directory_row(children_);
      by_name[row.name].rows.push_back(std::move(row));
    }
  }

  SQLite::Database& database_;
  SQLite::Statement find_;
  SQLite::Statement children_;
};

}  // namespace

base::Result<std::optional<Usage>> query_usage(UsageDatabase& database, std::string_view path,
                                               std::uint64_t depth) {
  SQLite::Database& handle = database.handle();
  return guarded("look up usage", handle.getFilename(), [&]() -> std::optional<Usage> {
    const SQLite::Transaction one_view(handle);  // a scan may commit between two queries
    Query query(handle);
    const auto place = query.find(path);
    if (!place) return std::nullopt;
    Usage usage;
    usage.total = sum_up(*place);
    usage.below = query.below(*place, depth);
    usage.as_of = query.as_of();
    usage.complete = usage.total.complete && query.last_scan_saw_everything();
    return usage;
  });
}

}  // namespace spoor::scanner
