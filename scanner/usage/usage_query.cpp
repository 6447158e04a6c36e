#include "scanner/usage/usage_query.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "scanner/database/sqlite.h"
#include "scanner/errors.h"
#include "scanner/history/history_store.h"
#include "scanner/usage/directory_totals.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

// A directory of the result, and the row of its history.
struct Place {
  explicit Place(DirectoryTotal of) : total(std::move(of)) {
    entry.path = total.path;
    entry.files = total.figures.files;
    entry.dirs = total.figures.dirs;
    entry.bytes = total.figures.bytes;
    entry.allocated = total.figures.allocated;
    entry.mtime_ns = total.mtime_ns;
    entry.complete = total.complete;
    entry.is_unread = !total.all_read;
    total.identities = {};  // only the history needs them
  }

  DirectoryTotal total;
  UsageEntry entry;
  std::optional<std::int64_t> history = {};
};

constexpr std::int64_t no_history = -1;  // as a parent: there are no rows below it

class Query {
 public:
  Query(SqliteDatabase& database, const UsageOptions& options)
      : database_(database),
        options_(options),
        entries_left_(options.entries_max),
        path_bytes_left_(options.path_bytes_max),
        totals_(database) {
    if (options.since && has_history_tables(database)) history_.emplace(database);
  }

  base::Result<std::optional<Usage>> run(std::string_view path) {
    Place top(totals_.find(path));
    if (const auto past = history_ ? history_->find_path(path) : std::nullopt) compare(top, *past);
    const bool is_absent = !top.total.is_there && !top.entry.growth;
    if (is_absent && !options_.absent_is_empty) return std::optional<Usage>();
    std::optional<Usage> usage(std::in_place);
    usage->is_absent = is_absent;
    usage->has_copy_rules = !options_.copies.empty();
    const bool is_summed = add_copied(top, options_.copies.factor(path));
    usage->total = std::move(top.entry);
    if (!is_summed || !open_all({&usage->total, std::move(top.total), top.history})) return stopped_error();
    set_state(*usage);
    usage->truncated = truncated_;
    usage->since = options_.since;
    if (history_) usage->history_since = wall_time(history_since_);
    usage->history_is_full = history_ && is_history_full(database_);
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
    const DirectoryTotal top = totals_.find(path);
    if (!top.is_there) return std::optional<Usage>();
    std::optional<Usage> usage(std::in_place);
    set_state(*usage);
    usage->total = Place(top).entry;
    totals_.for_each(top, UsageOptions::unbounded, [&](const DirectoryTotal& total, std::uint64_t depth) {
      UsageEntry entry = Place(total).entry;
      entry.depth = depth;
      return visit(*usage, entry);
    });
    return usage;
  }

 private:
  // A directory whose children have to be read.
  struct Closed {
    UsageEntry* entry;
    DirectoryTotal total;
    std::optional<std::int64_t> history;

    bool has_children() const { return !total.parents.empty() || history; }
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

  // Compares the totals with those at the requested time.
  void compare(Place& place, const HistoryRow& past) const {
    const auto now = place.total.is_there ? std::optional(place.total.figures) : std::nullopt;
    place.history = past.id;
    place.entry.growth =
        growth_since(HistoryStore::points_of(past), history_time(*options_.since), history_since_, now);
  }

  // Those that exist, and those that only the history has, which is opened at the same directory.
  std::optional<Place> next_child(ChildTotals& children) {
    const std::string* name = children.peek();
    const HistoryRow* const past = history_ && history_->row() ? &*history_->row() : nullptr;
    if (past != nullptr && (name == nullptr || past->name < *name)) name = &past->name;
    if (name == nullptr) return std::nullopt;
    const std::string lowest = *name;
    Place child(children.take(lowest));
    if (past == nullptr || past->name != lowest) return child;
    compare(child, *past);
    history_->step();
    return child;
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
    if (history_) history_->open(closed.history.value_or(no_history));
    ChildTotals children(totals_, closed.total);
    const double factor = options_.copies.factor(entry.path);
    while (auto child = next_child(children)) {
      if (options_.should_stop && options_.should_stop()) return false;
      // One that is only in the history may have been deleted before.
      if (!child->total.is_there && !child->entry.growth) continue;
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
      entry.children.push_back(std::move(place.entry));
      waiting.push_back({&entry.children.back(), std::move(place.total), place.history});
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
      ChildTotals children(totals_, place.total);
      while (auto next = children.next()) {
        if (options_.should_stop && options_.should_stop()) return false;
        Place child(*std::move(next));
        if (!add_copied(child, factor)) return false;  // as deep as a rule has components
        // Files with names in several directories may have been counted before.
        left -= std::min(left, child.entry.bytes);
        for (const auto& [copies, bytes] : child.entry.copied)
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
  DirectoryTotals totals_;
  std::optional<HistoryStore> history_;  // nothing if it is not asked for, or none is kept
  const std::int64_t history_since_ = history_since(database_);
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

base::Result<UsageHistory> query_history(UsageDatabase& database, std::string_view path,
                                         std::optional<base::WallTime> since, std::size_t count_max) {
  SqliteDatabase& handle = database.handle();
  return guarded("look up the history", handle, [&] {
    const SqliteTransaction one_view(handle, SqliteTransaction::Kind::reading);
    UsageHistory found;
    SqliteStatement last(handle, "SELECT started_at_ns FROM scans ORDER BY id DESC LIMIT 1");
    if (last.step()) found.as_of = base::WallTime(std::chrono::nanoseconds(last.number(0)));
    if (!has_history_tables(handle)) return found;
    found.recorded_since = wall_time(history_since(handle));
    found.is_full = is_history_full(handle);
    const auto row = HistoryStore(handle).find_path(path);
    if (!row) return found;
    HistoryPoints& points = found.points;
    points = HistoryStore::points_of(*row);
    if (since) {
      const auto after = std::ranges::upper_bound(points, history_time(*since), {}, &HistoryPoint::at);
      if (after != points.begin()) points.erase(points.begin(), after - 1);
    }
    if (points.size() > count_max)
      points.erase(points.begin(), points.end() - static_cast<std::ptrdiff_t>(count_max));
    return found;
  });
}

void for_each_entry(const UsageEntry& entry, const std::function<void(const UsageEntry&)>& visit) {
  visit(entry);
  for (const UsageEntry& child : entry.children) for_each_entry(child, visit);
}

}  // namespace spoor::scanner
