#include "scanner/walk/walk_planner.h"

#include <algorithm>
#include <utility>

#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr std::size_t decided_at_once = 1024;
constexpr std::size_t planned_at_once = 8;
// Of a path from an open directory: the system's limit is 4096.
constexpr std::size_t planned_bytes_max = 2048;

// Whether the directory that was read by an earlier plan is this one.
bool is_it(const base::Result<DirectoryRead>& early, const DueDirectory& child) {
  if (!early || early->is_mount_point || early->handle.inode != child.inode) return false;
  return !early->is_known || (child.planned && early->handle.birth == child.stored->birth);
}

}  // namespace

WalkPlanner::WalkPlanner(WalkContext& context, DriveRows& rows, const WalkStack& stack,
                         const DirectoryHandle& root)
    : context_(context),
      rows_(rows),
      stack_(stack),
      mount_(root.mount),
      times_tell_(context.environment.reader.changes_times_with_entries(root)),
      read_ahead_(context.environment.reader, context.options.rules,
                  ReadAhead::Options{.mount = root.mount,
                                     .threads = context.readers(),
                                     .parts = context.listing_parts(),
                                     .stop = context.environment.stop,
                                     .taker_reads = !context.has_other_drives()}) {}

bool WalkPlanner::would_wait() const {
  if (stack_.open.back()->due.empty()) return false;
  const DueDirectory& next = stack_.open.back()->due.front();
  return next.ticket && !read_ahead_.is_ready(*next.ticket);
}

void WalkPlanner::finish(const OpenDirectory& directory) {
  if (!planning_.empty() && planning_.back().directory == &directory) planning_.pop_back();
  drop_early();
}

DueDirectory WalkPlanner::take_next(OpenDirectory& parent) {
  DueDirectory next = std::move(parent.due.front());
  parent.due.pop_front();
  --due_;
  return next;
}

// At least the next subdirectory of the directory that is open last; others some at once.
void WalkPlanner::plan_ahead() {
  if (planning_.empty() || (!needs_next() && room(*planning_.back().directory) < planned_at_once)) return;
  for (std::size_t count = 0; count < decided_at_once && !planning_.empty(); ++count) {
    OpenDirectory& level = *planning_.back().directory;
    if (level.all_decided()) {
      planning_.pop_back();
      continue;
    }
    if (!needs_next() && room(level) == 0) break;
    const std::size_t due_before = level.due.size();
    level.decide_next(planning_.back().path);
    if (level.due.size() == due_before) continue;
    ++due_;
    request(level, level.due.back(), tracker::join_path(planning_.back().path, level.due.back().name));
  }
  read_ahead_.submit(stack_.open.size(), std::exchange(requested_, {}));
  // A long chain of directories needs no descriptor a level.
  if (stack_.open.back()->all_decided() && stack_.open.size() > 1) stack_.open.back()->place.reset();
}

bool WalkPlanner::needs_next() const {
  return stack_.open.back()->due.empty() && !stack_.open.back()->all_decided();
}

// How many more may be waiting to be read. Where the pace is limited, few are read before their time.
std::size_t WalkPlanner::room(const OpenDirectory& level) const {
  const std::size_t max = context_.open_directories_max() / 2;
  if (context_.readers() == 0 || due_ >= max) return 0;
  const std::size_t room = std::min(level.room(due_), max - due_);
  return context_.pace.is_unlimited() || due_ < planned_at_once ? room : 0;
}

// Requests a subdirectory of the directory that is planned last, and plans what is below it.
void WalkPlanner::request(OpenDirectory& parent, DueDirectory& child, std::string path) {
  const Place place = place_of(parent);
  child.planned = plan_below(*place, child, path.size());
  if (child.planned) planning_.push_back({child.planned.get(), path});
  context_.wait_until_due();
  if (const auto early = early_.find(path); early != early_.end()) {
    child.ticket = std::move(early->second);
    child.is_early = true;
    early_.erase(early);
    return;
  }
  child.ticket = ticket(place, child, std::move(path));
  requested_.push_back(child.ticket);
}

void WalkPlanner::drop_early() {
  if (early_.empty()) return;
  const std::string below = stack_.path.empty() ? stack_.path : stack_.path + '/';
  auto at = early_.lower_bound(below);
  while (at != early_.end() && at->first.starts_with(below)) {
    read_ahead_.drop(*at->second);
    at = early_.erase(at);
  }
}

ReadAhead::Ticket WalkPlanner::ticket(Place parent, const DueDirectory& child, std::string path) const {
  std::optional<StoredDirectory> stored;
  if (child.stored && !reads_all_below(child.reason)) {
    const DirectoryRow& row = *child.stored;
    const bool may_be_known = child.planned && times_tell(row) && !context_.is_audited(rows_.drive(), path);
    stored = StoredDirectory{.facts = {.inode = row.inode,
                                       .birth = row.birth,
                                       .mtime_ns = row.own.mtime_ns,
                                       .ctime_ns = row.ctime_ns},
                             .times_tell = may_be_known};
  }
  return std::make_shared<ReadAhead::Task>(
      ReadAhead::Task{.parent = std::move(parent), .path = std::move(path), .stored = stored});
}

// Whether the directory with this row has the stored entries if it has the stored times: nothing but
// subdirectories counts in it, and it was not changed shortly before it was read, or since the clock was set.
bool WalkPlanner::times_tell(const DirectoryRow& row) const {
  const std::int64_t settled_before_ns = context_.settled_before_ns;
  return times_tell_ && row.own.files == 0 && row.directories > 0 && row.entries != 0 && !row.is_racy &&
         row.ctime_ns != 0 && row.own.mtime_ns < settled_before_ns && row.ctime_ns < settled_before_ns;
}

// Below a directory that can be told from any other one there, and is there most likely.
std::unique_ptr<OpenDirectory> WalkPlanner::plan_below(const ParentDirectory& parent,
                                                       const DueDirectory& child, std::size_t path_bytes) {
  const bool may_be = child.stored && child.stored->directories > 0 && is_proof(child.stored->birth) &&
                      UnchangedDirectory::may_be_one(*child.stored, child.reason);
  if (!may_be) return nullptr;
  std::string below = parent.way_to(child.name);
  if (below.size() > planned_bytes_max) return nullptr;
  auto planned = std::make_unique<UnchangedDirectory>(
      OpenDirectory::Start{*child.stored, child.stored, child.reason, child.at, path_bytes}, context_, rows_);
  const DirectoryFacts facts{.mount = mount_, .inode = child.stored->inode, .birth = child.stored->birth};
  planned->place = std::make_shared<ParentDirectory>(parent.above(), std::move(below), facts);
  return planned;
}

// A directory that is planned is closed; one that is open may have been closed meanwhile.
WalkPlanner::Place WalkPlanner::place_of(OpenDirectory& directory) const {
  if (directory.place) return directory.place;
  std::size_t at = stack_.open.size() - 1;
  while (stack_.open[at].get() != &directory) --at;
  while (!stack_.open[at]->is_open()) --at;  // the root is never closed
  const OpenDirectory& above = *stack_.open[at];
  std::string_view below =
      std::string_view(stack_.path).substr(above.path_bytes(), directory.path_bytes() - above.path_bytes());
  if (below.starts_with('/')) below.remove_prefix(1);
  const DirectoryFacts facts{.mount = mount_, .inode = directory.inode(), .birth = directory.row().birth};
  directory.place = std::make_shared<ParentDirectory>(above.place->above(), std::string(below), facts);
  return directory.place;
}

void WalkPlanner::drop(DueDirectory& child) {
  if (!child.planned) return;
  const auto at = std::ranges::find(planning_, child.planned.get(), &Planned::directory);
  planning_.erase(at, planning_.end());
  std::vector<std::unique_ptr<OpenDirectory>> dropped;
  dropped.push_back(std::move(child.planned));
  while (!dropped.empty()) {
    const std::unique_ptr<OpenDirectory> directory = std::move(dropped.back());
    dropped.pop_back();
    for (DueDirectory& due : directory->due) {
      --due_;
      if (due.ticket) early_.insert_or_assign(due.ticket->path, due.ticket);
      if (due.planned) dropped.push_back(std::move(due.planned));
    }
  }
}

base::Result<DirectoryRead> WalkPlanner::read(OpenDirectory& parent, DueDirectory& child) {
  if (!child.ticket) {
    context_.wait_until_due();
    child.ticket = ticket(place_of(parent), child, stack_.path);
  }
  auto found = read_ahead_.take(*child.ticket);
  if (child.is_early && !is_it(found, child)) {
    found = read_ahead_.take(*ticket(place_of(parent), child, stack_.path));
  }
  return found;
}

}  // namespace spoor::scanner
