#include "scanner/usage/usage_query.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "scanner/database/sqlite.h"
#include "scanner/errors.h"
#include "scanner/store/directory_store.h"
#include "scanner/store/link_corrections.h"
#include "scanner/usage/history_query.h"
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

// What the children of a directory are read from.
struct Sources {
  DirectoryTables directories;
  std::optional<LinkCorrections> links;  // nothing without corrections
  std::optional<HistoryReader> history;  // nothing if it is not asked for, or none is kept

  LinkCorrection links_of(std::int64_t drive, std::string_view path) {
    return links ? links->find(drive, walk_key(path)) : LinkCorrection();
  }
};

// The children of a logical directory, by name, summed over the drives that have them.
class Children {
 public:
  // `options`: compares with the history, which is opened at the same directory, and adds the children that
  // it alone has; null: only those that exist. The sources and the options must outlive it.
  Children(Sources& sources, const UsageOptions* options, std::string path, std::vector<Place::Row> parents,
           bool all_read)
      : sources_(sources),
        options_(sources.history ? options : nullptr),
        path_(std::move(path)),
        parents_(std::move(parents)),
        all_read_(all_read),
        rows_(sources.directories, ids_of(parents_)) {}

  std::optional<Place> next() {
    const std::string* name = rows_.peek();
    const HistoryRow* past =
        options_ != nullptr && sources_.history->row() ? &*sources_.history->row() : nullptr;
    if (past != nullptr && (name == nullptr || past->name < *name)) name = &past->name;
    if (name == nullptr) return std::nullopt;
    const std::string lowest = *name;
    std::optional<Place> child(std::in_place);
    child->entry.path = tracker::join_path(path_, lowest);
    child->entry.complete = all_read_;
    child->all_read = all_read_;
    rows_.take(lowest, [&](std::size_t parent, const DirectoryRow& row) {
      const std::int64_t drive = parents_[parent].drive;
      child->add(drive, row, sources_.links_of(drive, child->entry.path));
    });
    if (past != nullptr && past->name == lowest) {
      compare(*child, *past, *sources_.history, *options_);
      sources_.history->step();
    }
    return child;
  }

 private:
  static std::vector<std::int64_t> ids_of(const std::vector<Place::Row>& rows) {
    std::vector<std::int64_t> ids;
    ids.reserve(rows.size());
    for (const Place::Row& row : rows) ids.push_back(row.id);
    return ids;
  }

  Sources& sources_;
  const UsageOptions* options_;
  const std::string path_;
  const std::vector<Place::Row> parents_;
  const bool all_read_;
  JoinedChildren rows_;
};

constexpr std::int64_t no_history = -1;  // as a parent: there are no rows below it

std::optional<LinkCorrections> find_corrections(SqliteDatabase& database) {
  if (!LinkCorrections::are_in(database)) return std::nullopt;
  return std::optional<LinkCorrections>(std::in_place, database);
}

class Query {
 public:
  Query(SqliteDatabase& database, const UsageOptions& options)
      : database_(database),
        options_(options),
        entries_left_(options.entries_max),
        path_bytes_left_(options.path_bytes_max),
        sources_{DirectoryTables(database), find_corrections(database), std::nullopt} {
    if (options.since && has_history_tables(database)) sources_.history.emplace(database);
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
    if (!is_summed || !open_all({&usage->total, std::move(top.rows), top.all_read, top.history}))
      return stopped_error();
    set_state(*usage);
    usage->truncated = truncated_;
    usage->since = options_.since;
    if (sources_.history) usage->history_since = wall_time(sources_.history->since());
    usage->history_is_full = sources_.history && sources_.history->is_full();
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
    set_state(*usage);
    top.entry.is_unread = !top.all_read;
    usage->total = top.entry;
    std::deque<Children> open;
    const auto go_below = [&](const Place& place) {
      if (!place.rows.empty())
        open.emplace_back(sources_, nullptr, place.entry.path, place.rows, place.all_read);
    };
    if (!visit(*usage, usage->total)) return usage;
    for (go_below(top); !open.empty();) {
      auto child = open.back().next();
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
    SqliteStatement drives(database_, "SELECT id FROM drives");
    while (drives.step()) {
      const std::int64_t drive = drives.number(0);
      const auto found = sources_.directories.find_path(drive, path);
      all_read = all_read && !found.is_below_unread;
      if (found.row) place.add(drive, *found.row, sources_.links_of(drive, path));
    }
    place.entry.path = path;
    place.entry.complete = place.entry.complete && all_read;
    place.all_read = place.all_read && all_read;
    auto& history = sources_.history;
    if (const auto past = history ? history->find(path) : std::nullopt)
      compare(place, *past, *history, options_);
    return place;
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
    UsageEntry& entry = *closed.entry;
    FirstOf<Place> first(
        std::min(options_.children_max, entries_left_),
        [this](const Place& a, const Place& b) { return is_before(options_.order, a.entry, b.entry); });
    if (sources_.history) sources_.history->open(closed.history.value_or(no_history));
    Children children(sources_, &options_, entry.path, closed.rows, closed.all_read);
    const double factor = options_.copies.factor(entry.path);
    while (auto child = children.next()) {
      if (options_.should_stop && options_.should_stop()) return false;
      // One that is only in the history may have been deleted before.
      if (!child->is_there && !child->entry.growth) continue;
      child->entry.depth = closed.entry->depth + 1;
      if (!add_copied(*child, factor)) return false;
      if (const auto left_out = first.add(*std::move(child))) add_to_rest(entry.rest, left_out->entry);
    }
    entry.is_open = true;
    auto places = first.take();
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
    UsageEntry& entry = place.entry;
    factor = options_.copies.match(entry.path).value_or(factor);
    std::uint64_t left = entry.bytes;  // those that no rule below counts otherwise
    if (options_.copies.may_match_below(entry.path)) {
      Children children(sources_, nullptr, entry.path, place.rows, place.all_read);
      while (auto child = children.next()) {
        if (options_.should_stop && options_.should_stop()) return false;
        if (!add_copied(*child, factor)) return false;  // as deep as a rule has components
        // Files with names in several directories may have been counted before.
        left -= std::min(left, child->entry.bytes);
        for (const auto& [copies, bytes] : child->entry.copied)
          entry.copied[copies] = saturating_add(entry.copied[copies], bytes);
      }
    }
    if (factor > 1 && left > 0) entry.copied[factor] = saturating_add(entry.copied[factor], left);
    return true;
  }

  // What holds for all entries.
  void set_state(Usage& usage) {
    SqliteStatement complete(database_,
                             "SELECT started_at_ns FROM scans WHERE walked_everything OR NOT partial "
                             "ORDER BY id DESC LIMIT 1");
    if (complete.step()) usage.as_of = base::WallTime(std::chrono::nanoseconds(complete.number(0)));
    SqliteStatement last(database_,
                         "SELECT walked_everything OR NOT partial FROM scans ORDER BY id DESC LIMIT 1");
    usage.saw_everything = last.step() && last.number(0) != 0;
    usage.is_scanning =
        SqliteStatement(database_, "SELECT 1 FROM settings WHERE key = ?", SqliteText{unfinished_key}).step();
  }

  SqliteDatabase& database_;
  const UsageOptions& options_;
  std::uint64_t entries_left_;
  std::uint64_t path_bytes_left_;
  bool truncated_ = false;
  Sources sources_;
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

FirstOwners::FirstOwners(UsageOrder order, std::uint64_t count_max)
    : first_(count_max, [order](const OwnerEntry& a, const OwnerEntry& b) {
        const bool by_size = order == UsageOrder::size || order == UsageOrder::growth;
        if (by_size && a.totals.bytes != b.totals.bytes) return a.totals.bytes > b.totals.bytes;
        if (order == UsageOrder::files && a.totals.files != b.totals.files)
          return a.totals.files > b.totals.files;
        return a.owner < b.owner;
      }) {}

void FirstOwners::add(const OwnerEntry& entry) {
  const auto left_out = first_.add(entry);
  if (!left_out) return;
  ++owners_.rest_count;
  owners_.rest.add(left_out->totals);
}

UsageOwners FirstOwners::take() {
  owners_.list = first_.take();
  return std::move(owners_);
}

base::Result<std::string> parse_usage_path(std::string_view raw) {
  if (is_root(raw)) return std::string();
  return tracker::normalise_path(raw);
}

base::Result<std::optional<Usage>> query_usage(UsageDatabase& database, std::string_view path,
                                               const UsageOptions& options) {
  SqliteDatabase& handle = database.handle();
  return guarded("look up usage", handle, [&]() -> base::Result<std::optional<Usage>> {
    const SqliteTransaction one_view(
        handle, SqliteTransaction::Kind::reading);  // a scan may commit between two queries
    return Query(handle, options).run(path);
  });
}

base::Result<std::optional<Usage>> visit_usage(
    UsageDatabase& database, std::string_view path, const UsageOptions& options,
    const std::function<bool(const Usage&, const UsageEntry&)>& visit) {
  SqliteDatabase& handle = database.handle();
  return guarded("look up usage", handle, [&]() -> base::Result<std::optional<Usage>> {
    const SqliteTransaction one_view(handle, SqliteTransaction::Kind::reading);
    return Query(handle, options).visit_all(path, visit);
  });
}

void for_each_entry(const UsageEntry& entry, const std::function<void(const UsageEntry&)>& visit) {
  visit(entry);
  for (const UsageEntry& child : entry.children) for_each_entry(child, visit);
}

}  // namespace spoor::scanner
