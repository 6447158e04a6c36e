#include "scanner/usage/scan_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

#include "scanner/database/sqlite.h"
#include "scanner/errors.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr std::size_t ids_cached_max = 10'000;
constexpr std::size_t rows_at_once = 256;
constexpr std::int64_t clock_error_max_s = 86'400;

std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Another value: directories have a history now that had none before, or the other way round.
std::string settings_text(const HistoryOptions& options) {
  std::string text = std::to_string(options.depth);
  const std::set<std::string> prefixes(options.prefixes.begin(), options.prefixes.end());
  for (const std::string& prefix : prefixes) text += '\0' + prefix;
  return text;
}

bool is_there(const HistoryRow& row) {
  const auto newest = decode_newest(row.points);
  return newest && newest->is_there();
}

// Whether the row is proven to be of another directory.
bool is_another(const HistoryIdentity& known, const DirectoryTotal& total) {
  const auto found = std::ranges::find(total.identities, known.drive, &HistoryIdentity::drive);
  if (found == total.identities.end()) return false;
  const bool has_other_birth = is_proof(known.birth) && is_proof(found->birth) && known.birth != found->birth;
  return known.inode != found->inode || has_other_birth;
}

// Keeps the drive if the directory is still there.
void update_identity(HistoryIdentity& identity, const DirectoryTotal& total) {
  if (total.identities.empty()) return;
  const auto same_drive = std::ranges::find(total.identities, identity.drive, &HistoryIdentity::drive);
  identity = same_drive == total.identities.end() ? total.identities.front() : *same_drive;
}

}  // namespace

ScanHistory::ScanHistory(ScanTransaction& transaction, const HistoryOptions& options,
                         const TouchedPaths& touched, std::stop_token stop)
    : transaction_(transaction),
      database_(transaction.handle()),
      options_(options),
      touched_(touched),
      stop_(std::move(stop)) {}

HistoryReport ScanHistory::record(base::WallTime started_at) {
  at_ = history_time(started_at);
  const bool is_new = transaction_.keep_history(options_.keep);
  store_ = transaction_.history();
  if (store_ == nullptr) return {};
  begin(is_new);
  report_.clock_is_behind = clock_is_behind(started_at);
  if (report_.clock_is_behind) return report_;
  const KnownDirectories known = read_known();
  totals_.emplace(database_, known);
  const DirectoryTotal root = totals_->find("");
  knows_what_is_gone_ = !is_copied_ || (root.is_there && root.complete);
  // The totals of any directory may have become, or ceased to be, complete.
  if (known.unread_drives != totals_->unread_drives() && scope_ == Scope::touched) {
    scope_ = Scope::all;
    report_.refused = 0;
  }
  scope_ == Scope::touched ? record_touched() : record_all();
  record_gone();
  finish();
  return report_;
}

bool ScanHistory::clock_is_behind(base::WallTime started_at) {
  const auto later = (started_at + std::chrono::hours(24)).time_since_epoch().count();
  SqliteStatement query(database_, "SELECT count(*), ifnull(max(id), 0) FROM scans WHERE started_at_ns > ?",
                        later);
  query.step();
  const auto later_scans = query.number<std::uint64_t>(0);
  // With this one.
  const std::uint64_t scans_since = transaction_.scan_id() - query.number<std::uint64_t>(1);
  // A rebuilt database does not have the scans that recorded the points of its history.
  return std::max(later_scans, points_after(history_time(started_at) + clock_error_max_s)) > scans_since;
}

// Of the root: one for each scan at most.
std::uint64_t ScanHistory::points_after(std::int64_t at) {
  const auto root = store_->find(HistoryStore::parent_of_root, "");
  if (!root) return 0;
  const HistoryPoints points = HistoryStore::points_of(*root);
  return static_cast<std::uint64_t>(
      std::ranges::count_if(points, [&](const HistoryPoint& point) { return point.at > at; }));
}

// `is_new`: nothing was kept before.
void ScanHistory::begin(bool is_new) {
  report_.is_kept = true;
  const auto scan = find_setting(database_, history_scan_key);
  if (is_new) put_setting(database_, history_since_key, std::to_string(at_));
  const bool knows_all = scan == std::to_string(transaction_.scan_id() - 1) && !touched_.all();
  scope_ = find_setting(database_, history_settings_key) != settings_text(options_) ? Scope::all_are_new
           : knows_all                                                              ? Scope::touched
                                                                                    : Scope::all;
  is_copied_ = !is_new && !scan;
  // "PATHS POINTS REFUSED"
  std::istringstream counts(find_setting(database_, history_counts_key).value_or(""));
  counts >> report_.paths >> report_.points >> report_.refused;
  if (scope_ != Scope::touched) report_.refused = 0;
}

// "NEXT_ID DRIVE DRIVE ..."
KnownDirectories ScanHistory::read_known() {
  KnownDirectories known;
  std::istringstream numbers(find_setting(database_, history_known_key).value_or(""));
  numbers >> known.next_id;
  for (std::int64_t drive = 0; numbers >> drive;) known.unread_drives.insert(drive);
  return known;
}

void ScanHistory::finish() {
  const auto put = [&](const char* key, const std::string& value) { put_setting(database_, key, value); };
  put(history_known_key,
      fmt::format("{} {}", transaction_.directories().next_id(), fmt::join(totals_->unread_drives(), " ")));
  put(history_counts_key, fmt::format("{} {} {}", report_.paths, report_.points, report_.refused));
  if (!knows_what_is_gone_) return;  // the next scan compares all again
  put(history_scan_key, std::to_string(transaction_.scan_id()));
  put(history_settings_key, settings_text(options_));
}

void ScanHistory::record_touched() {
  to_record_.insert(touched_.changed().begin(), touched_.changed().end());
  for (const std::string& path : touched_.erased()) {
    throw_if_stopped(stop_);
    find_gone(path);
  }
  for (const std::string& path : to_record_) {
    throw_if_stopped(stop_);
    record(totals_->find(path));
  }
}

void ScanHistory::record_all() {
  if (knows_what_is_gone_) find_gone("");
  totals_->for_each(totals_->find(""), options_.depth, [&](const DirectoryTotal& total, std::uint64_t) {
    throw_if_stopped(stop_);
    record(total);
    return true;
  });
  for (const std::string& prefix :
       std::set<std::string>(options_.prefixes.begin(), options_.prefixes.end())) {
    throw_if_stopped(stop_);
    record(totals_->find(prefix));
  }
}

// Those below a directory come first: when it makes room, nothing below it is waiting.
void ScanHistory::record_gone() {
  std::map<std::string, HistoryRow, std::greater<>> deepest_first;
  std::vector<std::string> moved;
  for (auto& [id, gone] : gone_) {
    const std::string path = path_after_moves(gone.path);
    if (touched_.keeps(path) && path != gone.path && totals_->find(path).is_there) {
      moved.push_back(path);
    } else {
      deepest_first.emplace(path, std::move(gone.row));
    }
  }
  for (const std::string& path : moved) record(totals_->find(path));
  for (auto& [path, row] : deepest_first) {
    throw_if_stopped(stop_);
    if (touched_.keeps(path)) {
      put(row, {.at = at_, .figures = {}, .event = HistoryEvent::deleted});
    } else {
      erase_or_hollow(path, std::move(row));  // moved below the depth
    }
  }
}

// Finds what is gone of a directory and of all below it.
void ScanHistory::find_gone(const std::string& path) {
  auto top = find(path);
  if (!top) return;
  const std::int64_t id = top->id;
  look_for_gone(path, *std::move(top));
  for_each_below(path, id,
                 [this](const std::string& below, HistoryRow row) { look_for_gone(below, std::move(row)); });
}

void ScanHistory::for_each_below(const std::string& path, std::int64_t id,
                                 const std::function<void(const std::string&, HistoryRow)>& visit) {
  struct Level {
    std::int64_t id;
    std::string path;
    std::optional<std::string> after = {};
  };
  std::vector<Level> open{{id, path}};
  while (!open.empty()) {
    throw_if_stopped(stop_);
    const Level level = open.back();
    auto rows = store_->children(level.id, level.after, rows_at_once);
    if (rows.size() < rows_at_once) {
      open.pop_back();
    } else {
      open.back().after = rows.back().name;
    }
    for (HistoryRow& row : rows) {
      std::string below = tracker::join_path(level.path, row.name);
      const std::int64_t its_id = row.id;
      visit(below, std::move(row));
      open.push_back({its_id, std::move(below)});
    }
  }
}

void ScanHistory::look_for_gone(const std::string& path, HistoryRow row) {
  if (!touched_.keeps(path)) return erase_or_hollow(path, std::move(row));
  if (!is_there(row)) return;
  if (totals_->find(path).is_there) {
    if (scope_ == Scope::touched) to_record_.insert(path);
  } else {
    add_gone(path, std::move(row));
  }
}

// The settings keep no history of the directory any more.
void ScanHistory::erase_or_hollow(const std::string& path, HistoryRow row) {
  if (!touched_.keeps_below(path)) return erase(row.id);
  if (row.points.empty()) return;
  report_.points -= std::min<std::uint64_t>(report_.points, HistoryStore::points_of(row).size());
  row.points.clear();
  static_cast<void>(store_->update(row, std::nullopt));
}

void ScanHistory::add_gone(const std::string& path, HistoryRow row) {
  if (gone_.size() >= renames_max) {
    too_many_gone_ = true;
    gone_by_identity_.clear();
    return put(row, {.at = at_, .figures = {}, .event = HistoryEvent::deleted});
  }
  if (is_proof(row.identity.birth) && !too_many_gone_) gone_by_identity_.emplace(row.identity, row.id);
  const std::int64_t id = row.id;
  gone_.emplace(id, Gone{path, std::move(row)});
}

HistoryPoint ScanHistory::point_of(const DirectoryTotal& total, HistoryEvent event) const {
  return {.at = at_,
          .figures = total.figures,
          .event = event,
          .complete = total.complete,
          .unread = total.unread};
}

void ScanHistory::record(const DirectoryTotal& total) {
  auto row = find(total.path);
  const bool was_there = row && is_there(*row);
  if (!total.is_there) {
    if (was_there && knows_what_is_gone_ && !gone_.contains(row->id)) add_gone(total.path, *std::move(row));
  } else if (was_there) {
    record_known(*std::move(row), total);
  } else {
    record_appeared(std::move(row), total);
  }
}

void ScanHistory::record_known(HistoryRow row, const DirectoryTotal& total) {
  HistoryPoint point = point_of(total);
  // It was moved along with a directory above it.
  if (auto moved = gone_.extract(row.id); !moved.empty()) {
    point.event = HistoryEvent::renamed;
    point.from = std::move(moved.mapped().path);
    gone_by_identity_.erase(row.identity);
  }
  if (!total.path.empty() && is_another(row.identity, total)) point.event = HistoryEvent::recreated;
  const HistoryIdentity before = row.identity;
  update_identity(row.identity, total);
  const HistoryPoint newest = *decode_newest(row.points);
  const bool is_same =
      newest.figures == point.figures && newest.complete == point.complete && newest.unread == point.unread;
  if (point.event != HistoryEvent::none || !is_same) {
    put(row, std::move(point));
  } else if (row.identity != before) {
    static_cast<void>(store_->update(row, std::nullopt));
  }
}

// `row` is that of a directory of this name that was deleted before, or has no points.
void ScanHistory::record_appeared(std::optional<HistoryRow> row, const DirectoryTotal& total) {
  if (move_to(total, row)) return;
  if (!has_room(row ? 0 : 1, 1)) {
    ++report_.refused;
    return;
  }
  // What made room may be the row itself, or one above it.
  row = find(total.path);
  if (row) {
    static_cast<void>(store_->update(*row, std::nullopt));  // it makes no room from now on
  } else {
    row = HistoryRow{.name = std::string(name_of(total.path))};
    const std::int64_t parent = make_parent(total.path);
    row->id = store_->add(parent, *row);
    ++report_.paths;
  }
  row->identity = {};
  update_identity(row->identity, total);
  // One that was deleted was known. Without an event, it may be older than its history.
  const bool is_new = scope_ != Scope::all_are_new && total.is_new && !may_have_been_unread(total.path);
  put(*row, point_of(total, is_new || !row->points.empty() ? HistoryEvent::created : HistoryEvent::none));
}

// Moves the history of a directory here that had another name before. `there` is what is known of this name.
bool ScanHistory::move_to(const DirectoryTotal& total, const std::optional<HistoryRow>& there) {
  const std::string& path = total.path;
  if (path.empty() || gone_by_identity_.empty()) return false;
  const auto identity = std::ranges::find_if(
      total.identities, [&](const HistoryIdentity& each) { return gone_by_identity_.contains(each); });
  if (identity == total.identities.end()) return false;
  if (there && there->points.empty()) return false;  // others are below it
  auto gone = gone_.extract(gone_by_identity_.extract(*identity).mapped()).mapped();
  if (there) erase(there->id);
  store_->move(gone.row.id, make_parent(path), name_of(path));
  ids_.clear();
  moves_[gone.path] = path;
  // What is below may be too deep for a history now.
  for_each_below(path, gone.row.id, [this](const std::string& below, HistoryRow row) {
    // One that is gone may have been moved out of it before: record_gone() erases it otherwise.
    if (touched_.keeps(below) || gone_.contains(row.id)) return;
    erase_or_hollow(below, std::move(row));
  });
  std::string from = gone.path.size() <= HistoryPoint::from_bytes_max ? std::move(gone.path) : std::string();
  HistoryPoint point = point_of(total, HistoryEvent::renamed);
  point.from = std::move(from);
  put(gone.row, std::move(point));
  return true;
}

// Whether a directory that appears may have been below one that was unread before this scan.
bool ScanHistory::may_have_been_unread(std::string_view path) {
  if (path.empty()) return false;
  // Without a history of the directory above, only whether one further up was complete is known.
  bool is_exact = touched_.keeps(tracker::parent_path(path));
  while (!were_incomplete_.empty() && !path.empty()) {
    path = tracker::parent_path(path);
    const auto id = id_of(path);
    const auto was = id ? were_incomplete_.find(*id) : were_incomplete_.end();
    if (was != were_incomplete_.end() && (was->second || !is_exact)) return true;
    is_exact = is_exact || touched_.keeps(path);
  }
  return false;
}

// Where the row of a directory is that was below one that moved.
std::string ScanHistory::path_after_moves(const std::string& path) const {
  for (std::string_view above = path; !above.empty(); above = tracker::parent_path(above)) {
    const auto move = moves_.find(above);
    if (move != moves_.end()) return move->second + path.substr(above.size());
  }
  return path;
}

std::optional<HistoryRow> ScanHistory::find(std::string_view path) {
  std::optional<std::int64_t> parent = HistoryStore::parent_of_root;
  if (!path.empty()) parent = id_of(tracker::parent_path(path));
  if (!parent) return std::nullopt;
  auto row = store_->find(*parent, name_of(path));
  if (row) remember(path, row->id);
  return row;
}

// Without recursion: a configured prefix may be deep.
std::optional<std::int64_t> ScanHistory::id_of(std::string_view path) {
  if (const auto known = ids_.find(std::string(path)); known != ids_.end()) return known->second;
  const auto row = store_->find_path(path);
  if (!row) return std::nullopt;
  remember(path, row->id);
  return row->id;
}

// The row above, with those above it. They have no points if their history is not kept.
std::int64_t ScanHistory::make_parent(std::string_view path) {
  if (path.empty()) return HistoryStore::parent_of_root;
  const std::string_view above = tracker::parent_path(path);
  if (const auto known = id_of(above)) return *known;
  const auto find_or_add = [&](std::int64_t parent, std::string_view name) {
    if (const auto row = store_->find(parent, name)) return row->id;
    ++report_.paths;
    return store_->add(parent, {.name = std::string(name)});
  };
  std::int64_t id = find_or_add(HistoryStore::parent_of_root, "");
  for (tracker::ComponentCursor at(above); at.next();) id = find_or_add(id, at.component());
  return id;
}

void ScanHistory::remember(std::string_view path, std::int64_t id) {
  if (ids_.size() >= ids_cached_max) ids_.clear();
  ids_.insert_or_assign(std::string(path), id);
}

void ScanHistory::put(HistoryRow& row, HistoryPoint point) {
  if (point.from.size() > HistoryPoint::from_bytes_max) point.from.clear();
  const bool is_there = point.is_there();
  HistoryPoints points = HistoryStore::points_of(row);
  if (!points.empty() && !points.back().complete) were_incomplete_.emplace(row.id, points.back().unread);
  const std::size_t before = points.size();
  append_point(points, std::move(point));
  thin_out(points);
  if (points.size() > before && !has_room(0, points.size() - before)) thin_out_to(points, before);
  row.points = encode_points(points);
  // A directory above it may have made room, with all below.
  if (!store_->update(row, is_there ? std::nullopt : std::optional(at_))) return;
  report_.points += points.size();
  report_.points -= std::min<std::uint64_t>(report_.points, before);
}

void ScanHistory::erase(std::int64_t id) {
  const auto removed = store_->erase(id);
  report_.paths -= std::min(report_.paths, removed.rows);
  report_.points -= std::min(report_.points, removed.points);
  ids_.clear();
}

// Removes the history of directories that no longer exist until so many more fit.
bool ScanHistory::has_room(std::uint64_t paths, std::uint64_t points) {
  for (;;) {
    const bool fits =
        report_.paths + paths <= options_.paths_max && report_.points + points <= options_.points_max;
    if (fits) return true;
    const auto first = store_->first_gone();
    if (!first) return false;
    erase(*first);
  }
}

}  // namespace spoor::scanner
