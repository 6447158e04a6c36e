#include "scanner/store/usage_query.h"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Transaction.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <utility>

#include "scanner/errors.h"
#include "scanner/store/directory_store.h"
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
  bool is_there = false;                     // on some drive
  bool all_read = true;                      // below an unread directory, the stored rows may be outdated
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

// The children of one directory on one drive, by name.
class Rows {
 public:
  explicit Rows(DirectoryTables& directories) : directories_(directories) {}

  void open(std::int64_t parent) {
    parent_ = parent;
    fetch(std::nullopt);
  }

  // Null after the last one.
  const DirectoryRow* row() const { return at_ < fetched_.size() ? &fetched_[at_] : nullptr; }

  void step() {
    if (++at_ == fetched_max) fetch(fetched_.back().name);
  }

 private:
  static constexpr std::size_t fetched_max = 512;  // a directory may have millions

  void fetch(const std::optional<std::string>& after) {
    fetched_ = directories_.children(parent_, after, fetched_max);
    at_ = 0;
  }

  DirectoryTables& directories_;
  std::int64_t parent_ = 0;
  std::vector<DirectoryRow> fetched_;
  std::size_t at_ = 0;
};

// Compares the totals with those at the requested time.
void compare(Place& place, const HistoryRow& past, const HistoryReader& history,
             const UsageOptions& options) {
  const UsageEntry& entry = place.entry;
  std::optional<HistoryFigures> now;
  if (place.is_there) now = HistoryFigures{entry.files, entry.dirs, entry.bytes, entry.allocated};
  place.history = past.id;
  place.entry.growth =
      growth_since(HistoryStore::points_of(past), history_time(*options.since), history.since(), now);
}

// The children of a logical directory, by name, summed over the drives that have them.
class Children {
 public:
  // `history`: opened at the same directory; with nothing, its children are those that exist.
  Children(DirectoryTables& directories, std::optional<LinkCorrections>& links,
           std::optional<HistoryReader>& history, const UsageOptions& options)
      : directories_(directories), links_(links), history_(history), options_(options) {}

  void open(std::string_view path, const std::vector<Place::Row>& rows, bool all_read) {
    path_ = path;
    parents_ = rows;
    all_read_ = all_read;
    while (rows_.size() < rows.size()) rows_.push_back(std::make_unique<Rows>(directories_));
    for (std::size_t drive = 0; drive < rows.size(); ++drive) rows_[drive]->open(rows[drive].id);
  }

  std::optional<Place> next() {
    const std::string* name = nullptr;
    for (std::size_t drive = 0; drive < parents_.size(); ++drive) {
      const auto& row = rows_[drive]->row();
      if (row && (name == nullptr || row->name < *name)) name = &row->name;
    }
    const HistoryRow* past = history_ && history_->row() ? &*history_->row() : nullptr;
    if (past != nullptr && (name == nullptr || past->name < *name)) name = &past->name;
    if (name == nullptr) return std::nullopt;
    const std::string lowest = *name;
    std::optional<Place> child(std::in_place);
    child->entry.path = tracker::join_path(path_, lowest);
    child->entry.complete = all_read_;
    child->all_read = all_read_;
    for (std::size_t drive = 0; drive < parents_.size(); ++drive) {
      const auto& row = rows_[drive]->row();
      if (!row || row->name != lowest) continue;
      const std::int64_t id = parents_[drive].drive;
      child->add(id, *row, links_of(id, child->entry.path));
      rows_[drive]->step();
    }
    if (past != nullptr && past->name == lowest) {
      compare(*child, *past, *history_, options_);
      history_->step();
    }
    return child;
  }

 private:
  LinkCorrection links_of(std::int64_t drive, std::string_view path) {
    return links_ ? links_->find(drive, walk_key(path)) : LinkCorrection();
  }

  DirectoryTables& directories_;
  std::optional<LinkCorrections>& links_;
  std::optional<HistoryReader>& history_;
  const UsageOptions& options_;
  std::string path_;
  std::vector<Place::Row> parents_;
  bool all_read_ = true;
  std::vector<std::unique_ptr<Rows>> rows_;  // as many as a directory has needed so far
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
      return is_before(order, left.entry, right.entry);
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
        directories_(database) {
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
    const bool is_absent = !top.is_there && !top.entry.growth;
    if (is_absent && !options_.absent_is_empty) return std::optional<Usage>();
    std::optional<Usage> usage(std::in_place);
    usage->is_absent = is_absent;
    usage->has_copy_rules = !options_.copies.empty();
    const bool is_summed = add_copied(top, options_.copies.factor(path));
    top.entry.is_unread = !top.all_read;
    usage->total = std::move(top.entry);
    if (!is_summed || !open_all({&usage->total, std::move(top.rows), top.all_read, top.history})) {
      return stopped_error();
    }
    usage->as_of = as_of();
    usage->saw_everything = last_scan_saw_everything();
    usage->is_scanning = is_scanning();
    usage->truncated = truncated_;
    usage->since = options_.since;
    if (history_) usage->history_since = wall_time(history_->since());
    usage->history_is_full = history_ && history_->is_full();
    usage->with_owners = options_.owners;
    if (options_.owners && !usage->total.is_saturated()) {
      bool is_stopped = false;
      usage->owners = find_owners(path, is_stopped);
      if (is_stopped) return stopped_error();
    }
    return usage;
  }

  base::Result<std::optional<Usage>> visit_all(
      std::string_view path, const std::function<bool(const Usage&, const UsageEntry&)>& visit) {
    Place top = find(path);
    if (!top.is_there) return std::optional<Usage>();
    std::optional<Usage> usage(std::in_place);
    usage->as_of = as_of();
    usage->saw_everything = last_scan_saw_everything();
    usage->is_scanning = is_scanning();
    top.entry.is_unread = !top.all_read;
    usage->total = top.entry;
    std::vector<std::unique_ptr<Children>> open;
    const auto go_below = [&](const Place& place) {
      if (place.rows.empty()) return;
      open.push_back(std::make_unique<Children>(directories_, links_, no_history_, options_));
      open.back()->open(place.entry.path, place.rows, place.all_read);
    };
    if (!visit(*usage, usage->total)) return usage;
    for (go_below(top); !open.empty();) {
      auto child = open.back()->next();
      if (!child) {
        open.pop_back();
        continue;
      }
      child->entry.depth = open.size();
      child->entry.is_unread = !child->all_read;
      if (!visit(*usage, child->entry)) break;
      go_below(*child);
    }
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

  static base::Error stopped_error() {
    return {Errc::interrupted, "reading the totals was interrupted; request fewer directories"};
  }

  std::optional<UsageOwners> find_owners(std::string_view path, bool& is_stopped) {
    FirstOwners first(options_.order, options_.children_max);
    const bool are_kept = for_each_owner(database_, path, [&](const OwnerEntry& entry) {
      first.add(entry);
      is_stopped = options_.should_stop && options_.should_stop();
      return !is_stopped;
    });
    if (!are_kept) return std::nullopt;
    return first.take();
  }

  // Of zeros if no drive has the path.
  Place find(std::string_view path) {
    Place place;
    bool all_read = true;
    for (const std::int64_t drive : drive_ids()) {
      const auto row = find_on(drive, path, all_read);
      if (!row) continue;
      place.is_there = true;
      place.add(drive, *row, links_ ? links_->find(drive, walk_key(path)) : LinkCorrection());
    }
    place.entry.path = path;
    place.entry.complete = place.entry.complete && all_read;
    place.all_read = place.all_read && all_read;
    if (const auto past = history_ ? history_->find(path) : std::nullopt)
      compare(place, *past, *history_, options_);
    return place;
  }

  std::vector<std::int64_t> drive_ids() {
    SqliteStatement query(database_, "SELECT id FROM drives");
    std::vector<std::int64_t> ids;
    while (query.step()) ids.push_back(query.number(0));
    return ids;
  }

  // Descends from the drive's root. Below an unread directory, stored rows may be outdated or missing.
  std::optional<DirectoryRow> find_on(std::int64_t drive, std::string_view path, bool& all_read) {
    auto row = directories_.find(DirectoryTables::parent_of_root(drive), "");
    for (tracker::ComponentCursor at(path); row && at.next();) {
      if (row->state == DirectoryState::unread) all_read = false;
      row = directories_.find(row->id, at.component());
    }
    return row;
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
    children_.open(closed.entry->path, closed.rows, closed.all_read);
    if (history_) history_->open(closed.history.value_or(no_history));
    const double factor = options_.copies.factor(closed.entry->path);
    while (auto child = children_.next()) {
      if (options_.should_stop && options_.should_stop()) return false;
      // One that is only in the history may have been deleted before.
      if (!child->is_there && !child->entry.growth) continue;
      child->entry.depth = closed.entry->depth + 1;
      if (!add_copied(*child, factor)) return false;
      first.offer(*std::move(child));
    }
    UsageEntry& entry = *closed.entry;
    entry.is_open = true;
    auto places = first.take();
    entry.rest = first.rest();
    leave_out_beyond_bounds(places, entry.rest);
    if (places.size() < options_.children_max && entry.rest.count > 0) truncated_ = true;
    entry.children.reserve(places.size());  // `waiting` points into it
    for (Place& place : places) {
      place.entry.is_unread = !place.all_read;
      entry.children.push_back(std::move(place.entry));
      waiting.push_back({&entry.children.back(), std::move(place.rows), place.all_read, place.history});
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

  // Sets Place::entry.copied. The bytes of a directory that no rule matches are those of its parent's rule.
  // Returns false after a stop.
  bool add_copied(Place& place, double factor) {
    if (options_.copies.empty()) return true;
    return add_copied(place, options_.copies.match(place.entry.path).value_or(factor), 0);
  }

  // `level`: of the recursion, as deep as a rule has components.
  bool add_copied(Place& place, double factor, std::size_t level) {
    UsageEntry& entry = place.entry;
    std::uint64_t left = entry.bytes;  // those that no rule below counts otherwise
    if (options_.copies.may_match_below(entry.path)) {
      if (copied_.size() == level)
        copied_.push_back(std::make_unique<Children>(directories_, links_, no_history_, options_));
      Children& children = *copied_[level];
      children.open(entry.path, place.rows, place.all_read);
      while (auto child = children.next()) {
        if (options_.should_stop && options_.should_stop()) return false;
        const double its = options_.copies.match(child->entry.path).value_or(factor);
        if (!add_copied(*child, its, level + 1)) return false;
        // Files with names in several directories may have been counted before.
        left -= std::min(left, child->entry.bytes);
        for (const auto& [copies, bytes] : child->entry.copied)
          entry.copied[copies] = saturating_add(entry.copied[copies], bytes);
      }
    }
    if (factor > 1 && left > 0) entry.copied[factor] = saturating_add(entry.copied[factor], left);
    return true;
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

  bool is_scanning() {
    return SqliteStatement(database_, "SELECT 1 FROM settings WHERE key = ?", SqliteText{unfinished_key})
        .step();
  }

  SQLite::Database& database_;
  const UsageOptions& options_;
  std::uint64_t entries_left_;
  std::uint64_t path_bytes_left_;
  bool truncated_ = false;
  DirectoryTables directories_;
  std::optional<LinkCorrections> links_;  // nothing without corrections
  std::optional<HistoryReader> history_;  // nothing if it is not asked for, or none is kept
  Children children_{directories_, links_, history_, options_};
  std::optional<HistoryReader> no_history_;
  std::vector<std::unique_ptr<Children>> copied_ = {};  // of each level of add_copied()
};

// How much the entry grew or shrank; 0 if that is not known.
std::uint64_t bytes_changed(const UsageEntry& entry) {
  if (!entry.growth) return 0;
  const std::int64_t bytes = entry.growth->bytes;
  return bytes < 0 ? 0 - static_cast<std::uint64_t>(bytes) : static_cast<std::uint64_t>(bytes);
}

bool is_root(std::string_view raw) {
  for (tracker::ComponentCursor at(raw); at.next();) {
    if (!at.component().empty() && at.component() != ".") return false;
  }
  return true;
}

}  // namespace

std::uint64_t UsageFigures::logical_bytes() const {
  // The bound of 2^64 is no double: beyond 2^63 the sum is as good as it.
  constexpr double most = 9.2e18;
  std::uint64_t once = bytes;
  double rest = 0;
  for (const auto& [factor, its] : copied) {
    once -= std::min(once, its);
    rest += static_cast<double>(its) / factor;
  }
  return saturating_add(once, static_cast<std::uint64_t>(std::llround(std::clamp(rest, 0.0, most))));
}

void UsageFigures::add(const UsageFigures& other) {
  files = saturating_add(files, other.files);
  dirs = saturating_add(dirs, other.dirs);
  bytes = saturating_add(bytes, other.bytes);
  allocated = saturating_add(allocated, other.allocated);
  complete = complete && other.complete;
  for (const auto& [factor, its] : other.copied) copied[factor] = saturating_add(copied[factor], its);
}

void add_to_rest(UsageRest& rest, const UsageEntry& entry) {
  if (rest.count == 0 && entry.growth) {
    rest.growth.emplace();
    rest.growth->since = entry.growth->since;
  }
  if (!entry.growth) {
    rest.growth.reset();
  } else if (rest.growth) {
    rest.growth->add(*entry.growth);
  }
  ++rest.count;
  rest.add(entry);
}

bool is_before(UsageOrder order, const UsageEntry& a, const UsageEntry& b) {
  if (order == UsageOrder::size && a.bytes != b.bytes) return a.bytes > b.bytes;
  if (order == UsageOrder::files && a.files != b.files) return a.files > b.files;
  if (order == UsageOrder::growth) {
    if (a.growth.has_value() != b.growth.has_value()) return a.growth.has_value();
    if (bytes_changed(a) != bytes_changed(b)) return bytes_changed(a) > bytes_changed(b);
  }
  return a.path < b.path;
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

base::Result<std::optional<Usage>> visit_usage(
    UsageDatabase& database, std::string_view path, const UsageOptions& options,
    const std::function<bool(const Usage&, const UsageEntry&)>& visit) {
  SQLite::Database& handle = database.handle();
  return guarded("look up usage", handle, [&]() -> base::Result<std::optional<Usage>> {
    const SQLite::Transaction one_view(handle);
    return Query(handle, options).visit_all(path, visit);
  });
}

void for_each_entry(const UsageEntry& entry, const std::function<void(const UsageEntry&)>& visit) {
  visit(entry);
  for (const UsageEntry& child : entry.children) for_each_entry(child, visit);
}

}  // namespace spoor::scanner
