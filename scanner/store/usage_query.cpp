#include "scanner/store/usage_query.h"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Transaction.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "scanner/errors.h"
#include "scanner/store/history_query.h"
#include "scanner/store/link_corrections.h"
#include "scanner/store/sqlite.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

// A logical directory: its totals, and the rows that have its children.
struct Place {
  // A row that has children.
  struct Row {
    std::int64_t drive = 0;
    std::int64_t id = 0;
  };

  UsageEntry entry;
  std::vector<Row> rows;                     // one for each drive
  bool all_read = true;                      // below an unread directory, the stored rows may be outdated
  bool is_there = false;                     // on some drive
  std::optional<std::int64_t> history = {};  // the row of its history

  void add(std::int64_t drive, const DirectoryRow& row, const LinkCorrection& links) {
    entry.add({.files = row.subtree.files,
               .dirs = row.directories,
               .bytes = subtract_links(row.subtree.bytes, links.bytes),
               .allocated = subtract_links(row.subtree.allocated, links.allocated),
               .complete = row.pending == 0});
    entry.mtime_ns = std::max(entry.mtime_ns, row.subtree.mtime_ns);
    all_read = all_read && row.state != DirectoryState::unread;
    is_there = true;
    if (row.directories > 0) rows.push_back({drive, row.id});
  }
};

void add_growth(UsageRest& rest, const UsageEntry& entry) {
  if (rest.count == 0 && entry.growth) {
    rest.growth.emplace();
    rest.growth->since = entry.growth->since;
  }
  if (!entry.growth) {
    rest.growth.reset();
  } else if (rest.growth) {
    rest.growth->add(*entry.growth);
  }
}

void add_to_rest(UsageRest& rest, const UsageEntry& entry) {
  add_growth(rest, entry);
  ++rest.count;
  rest.add(entry);
}

// How much the entry grew or shrank; 0 if that is not known.
std::uint64_t bytes_changed(const UsageEntry& entry) {
  if (!entry.growth) return 0;
  const std::int64_t bytes = entry.growth->bytes;
  return bytes < 0 ? 0 - static_cast<std::uint64_t>(bytes) : static_cast<std::uint64_t>(bytes);
}

// The children of one directory on one drive, by name.
class Rows {
 public:
  explicit Rows(SQLite::Database& database)
      : children_(database, select_directories(database, "parent = ?1 AND name > x'' ORDER BY name")) {}

  void open(std::int64_t parent) {
    children_.reset();
    children_.bind(1, parent);
    step();
  }

  // Nothing after the last one.
  const std::optional<DirectoryRow>& row() const { return row_; }

  void step() {
    row_.reset();
    if (children_.step()) row_ = read_directory_row(children_);
  }

 private:
  SqliteStatement children_;
  std::optional<DirectoryRow> row_;
};

// Keeps the first `count_max` of the offered places in the order, and sums up the others.
class FirstOnes {
 public:
  FirstOnes(UsageOrder order, std::uint64_t count_max) : order_(order), count_max_(count_max) {}

  void offer(Place place) {
    places_.push_back(std::move(place));
    std::push_heap(places_.begin(), places_.end(), Before{order_});
    if (places_.size() <= count_max_) return;
    std::pop_heap(places_.begin(), places_.end(), Before{order_});
    add_to_rest(rest_, places_.back().entry);
    places_.pop_back();
  }

  // Returns them in order. Call last.
  std::vector<Place> take() {
    std::sort_heap(places_.begin(), places_.end(), Before{order_});
    return std::move(places_);
  }
  const UsageRest& rest() const { return rest_; }

 private:
  struct Before {
    UsageOrder order;
    bool operator()(const Place& left, const Place& right) const {
      const UsageEntry& a = left.entry;
      const UsageEntry& b = right.entry;
      if (order == UsageOrder::size && a.bytes != b.bytes) return a.bytes > b.bytes;
      if (order == UsageOrder::files && a.files != b.files) return a.files > b.files;
      if (order == UsageOrder::growth) {
        if (a.growth.has_value() != b.growth.has_value()) return a.growth.has_value();
        if (bytes_changed(a) != bytes_changed(b)) return bytes_changed(a) > bytes_changed(b);
      }
      return a.path < b.path;
    }
  };

  const UsageOrder order_;
  const std::uint64_t count_max_;
  std::vector<Place> places_;  // a heap with the last one in the order on top
  UsageRest rest_;
};

constexpr std::int64_t no_history = -1;  // as a parent: there are no rows below it

class Query {
 public:
  Query(SQLite::Database& database, const UsageOptions& options)
      : database_(database),
        options_(options),
        entries_left_(options.entries_max),
        path_bytes_left_(options.path_bytes_max),
        find_(database, select_directories(database, "parent = ?1 AND name = ?2")) {
    const bool knows_links =
        database.execAndGet("SELECT count(*) FROM sqlite_master WHERE name = 'link_corrections'").getInt() >
        0;
    if (knows_links && database.execAndGet("SELECT EXISTS(SELECT 1 FROM link_corrections)").getInt() > 0) {
      links_.emplace(database);
    }
    if (options.since && has_history_tables(database)) history_.emplace(database);
  }

  base::Result<std::optional<Usage>> run(std::string_view path) {
    auto top = find(path);
    if (!top) return std::optional<Usage>();
    std::optional<Usage> usage(std::in_place);
    usage->total = std::move(top->entry);
    if (!open_all({&usage->total, std::move(top->rows), top->all_read, top->history})) {
      return base::Error(Errc::interrupted, "reading the totals was interrupted; request fewer directories");
    }
    usage->as_of = as_of();
    usage->saw_everything = last_scan_saw_everything();
    usage->truncated = truncated_;
    usage->since = options_.since;
    usage->history_is_full = history_ && history_->is_full();
    return usage;
  }

 private:
  // A directory whose children have to be read.
  struct Closed {
    UsageEntry* entry;
    std::vector<Place::Row> rows;
    bool all_read;
    std::optional<std::int64_t> history;

    bool has_children() const { return !rows.empty() || history; }
  };

  // Nothing if no drive has the path.
  std::optional<Place> find(std::string_view path) {
    std::optional<Place> place;
    bool all_read = true;
    for (const std::int64_t drive : drive_ids()) {
      const auto row = find_on(drive, path, all_read);
      if (!row) continue;
      if (!place) place.emplace();
      place->add(drive, *row, links_of(drive, path));
    }
    const auto past = history_ ? history_->find(path) : std::nullopt;
    if (!place && !past) return std::nullopt;
    if (!place) place.emplace();
    place->entry.path = path;
    place->entry.complete = place->entry.complete && all_read;
    place->all_read = place->all_read && all_read;
    if (past) compare(*place, *past);
    return place->is_there || place->entry.growth ? std::move(place) : std::nullopt;
  }

  // With its totals at the requested time.
  void compare(Place& place, const HistoryRow& past) {
    const UsageEntry& entry = place.entry;
    std::optional<HistoryFigures> now;
    if (place.is_there) now = HistoryFigures{entry.files, entry.dirs, entry.bytes, entry.allocated};
    place.history = past.id;
    place.entry.growth =
        growth_since(HistoryStore::points_of(past), history_time(*options_.since), history_->since(), now);
  }

  std::vector<std::int64_t> drive_ids() {
    SqliteStatement query(database_, "SELECT id FROM drives");
    std::vector<std::int64_t> ids;
    while (query.step()) ids.push_back(query.number(0));
    return ids;
  }

  // Descends from the drive's root. Below an unread directory, stored rows may be outdated or missing.
  std::optional<DirectoryRow> find_on(std::int64_t drive, std::string_view path, bool& all_read) {
    auto row = find_row(DirectoryStore::parent_of_root(drive), "");
    for (tracker::ComponentCursor at(path); row && at.next();) {
      if (row->state == DirectoryState::unread) all_read = false;
      row = find_row(row->id, at.component());
    }
    return row;
  }

  std::optional<DirectoryRow> find_row(std::int64_t parent, std::string_view name) {
    const SqliteStatement::Use use(find_, parent, name);
    if (!find_.step()) return std::nullopt;
    return read_directory_row(find_);
  }

  // Level by level, so that bounds cut the deepest levels. Returns false after a stop.
  bool open_all(Closed top) {
    std::deque<Closed> waiting;
    waiting.push_back(std::move(top));
    for (; !waiting.empty(); waiting.pop_front()) {
      const Closed& next = waiting.front();
      if (next.entry->depth == options_.depth) continue;
      if (next.has_children() && entries_left_ == 0) {
        truncated_ = true;
        continue;
      }
      if (!open(next, waiting)) return false;
    }
    return true;
  }

  bool open(const Closed& closed, std::deque<Closed>& waiting) {
    FirstOnes first(options_.order, std::min(options_.children_max, entries_left_));
    start_rows(closed.rows);
    if (history_) history_->open(closed.history.value_or(no_history));
    while (auto child = next_child(closed)) {
      if (options_.should_stop && options_.should_stop()) return false;
      // One that is only in the history may have been deleted before.
      if (child->is_there || child->entry.growth) first.offer(*std::move(child));
    }
    UsageEntry& entry = *closed.entry;
    entry.is_open = true;
    auto places = first.take();
    entry.rest = first.rest();
    leave_out_beyond_bounds(places, entry.rest);
    if (places.size() < options_.children_max && entry.rest.count > 0) truncated_ = true;
    entry.children.reserve(places.size());  // `waiting` points into it
    for (Place& place : places) {
      entry.children.push_back(std::move(place.entry));
      waiting.push_back(
          {&entry.children.back(), std::move(place.rows), place.all_read, std::move(place.history)});
    }
    return true;
  }

  void leave_out_beyond_bounds(std::vector<Place>& places, UsageRest& rest) {
    std::size_t kept = 0;
    for (; kept < places.size() && places[kept].entry.path.size() <= path_bytes_left_; ++kept) {
      path_bytes_left_ -= places[kept].entry.path.size();
    }
    entries_left_ = kept == places.size() ? entries_left_ - kept : 0;
    for (std::size_t left_out = kept; left_out < places.size(); ++left_out) {
      add_to_rest(rest, places[left_out].entry);
    }
    places.erase(places.begin() + static_cast<std::ptrdiff_t>(kept), places.end());
  }

  void start_rows(const std::vector<Place::Row>& parents) {
    while (rows_.size() < parents.size()) rows_.push_back(std::make_unique<Rows>(database_));
    for (std::size_t drive = 0; drive < parents.size(); ++drive) rows_[drive]->open(parents[drive].id);
    rows_open_ = parents.size();
  }

  // The next child by name, summed over the drives that have it.
  std::optional<Place> next_child(const Closed& parent) {
    const std::string* name = nullptr;
    for (std::size_t drive = 0; drive < rows_open_; ++drive) {
      const auto& row = rows_[drive]->row();
      if (row && (name == nullptr || row->name < *name)) name = &row->name;
    }
    const HistoryRow* past = history_ && history_->row() ? &*history_->row() : nullptr;
    if (past != nullptr && (name == nullptr || past->name < *name)) name = &past->name;
    if (name == nullptr) return std::nullopt;
    const std::string lowest = *name;
    std::optional<Place> child(std::in_place);
    child->entry.path = tracker::join_path(parent.entry->path, lowest);
    child->entry.depth = parent.entry->depth + 1;
    child->entry.complete = parent.all_read;
    child->all_read = parent.all_read;
    for (std::size_t drive = 0; drive < rows_open_; ++drive) {
      const auto& row = rows_[drive]->row();
      if (!row || row->name != lowest) continue;
      const std::int64_t id = parent.rows[drive].drive;
      child->add(id, *row, links_of(id, child->entry.path));
      rows_[drive]->step();
    }
    if (past != nullptr && past->name == lowest) {
      compare(*child, *past);
      history_->step();
    }
    return child;
  }

  LinkCorrection links_of(std::int64_t drive, std::string_view path) {
    return links_ ? links_->find(drive, walk_key(path)) : LinkCorrection();
  }

  std::optional<base::WallTime> as_of() {
    SqliteStatement query(database_,
                          "SELECT started_at_ns FROM scans WHERE walked_everything OR NOT partial "
                          "ORDER BY id DESC LIMIT 1");
    if (!query.step()) return std::nullopt;
    return base::WallTime(std::chrono::nanoseconds(query.number(0)));
  }

  bool last_scan_saw_everything() {
    SqliteStatement query(database_,
                          "SELECT walked_everything OR NOT partial FROM scans ORDER BY id DESC LIMIT 1");
    return query.step() && query.number(0) != 0;
  }

  SQLite::Database& database_;
  const UsageOptions& options_;
  std::uint64_t entries_left_;
  std::uint64_t path_bytes_left_;
  bool truncated_ = false;
  SqliteStatement find_;
  std::optional<LinkCorrections> links_;     // nothing without corrections
  std::optional<HistoryReader> history_;     // nothing if it is not asked for, or none is kept
  std::vector<std::unique_ptr<Rows>> rows_;  // as many as a directory has needed so far
  std::size_t rows_open_ = 0;
};

bool is_root(std::string_view raw) {
  for (tracker::ComponentCursor at(raw); at.next();) {
    if (!at.component().empty() && at.component() != ".") return false;
  }
  return true;
}

}  // namespace

void UsageFigures::add(const UsageFigures& other) {
  files = saturating_add(files, other.files);
  dirs += other.dirs;
  bytes = saturating_add(bytes, other.bytes);
  allocated = saturating_add(allocated, other.allocated);
  complete = complete && other.complete;
}

std::optional<UsageOrder> parse_usage_order(std::string_view text) {
  if (text == "size") return UsageOrder::size;
  if (text == "files") return UsageOrder::files;
  if (text == "name") return UsageOrder::name;
  if (text == "growth") return UsageOrder::growth;
  return std::nullopt;
}

base::Result<std::string> parse_usage_path(std::string_view raw) {
  if (is_root(raw)) return std::string();
  return tracker::normalise_path(raw);
}

base::Result<std::optional<Usage>> query_usage(UsageDatabase& database, std::string_view path,
                                               const UsageOptions& options) {
  SQLite::Database& handle = database.handle();
  return guarded("look up usage", handle, [&]() -> base::Result<std::optional<Usage>> {
    const SQLite::Transaction one_view(handle);  // a scan may commit between two queries
    return Query(handle, options).run(path);
  });
}

void for_each_entry(const UsageEntry& entry, const std::function<void(const UsageEntry&)>& visit) {
  visit(entry);
  for (const UsageEntry& child : entry.children) for_each_entry(child, visit);
}

}  // namespace spoor::scanner
