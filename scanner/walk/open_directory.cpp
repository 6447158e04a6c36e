#include "scanner/walk/open_directory.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr std::size_t names_max = 512;  // that are put together
constexpr std::size_t marked_at_once = 32;

}  // namespace

OpenDirectory::OpenDirectory(Start start, WalkContext& context, DriveRows& rows)
    : context_(context),
      rows_(rows),
      row_(std::move(start.row)),
      before_(std::move(start.before)),
      reason_(start.reason),
      at_(start.at),
      path_bytes_(start.path_bytes),
      inode_(row_.inode) {
  due_sums_.subtree.mtime_ns = std::numeric_limits<std::int64_t>::min();
}

OpenDirectory::~OpenDirectory() = default;

void OpenDirectory::set_open(DirectoryHandle read) {
  inode_ = read.inode;
  if (read.descriptor < 0) return;
  place = std::make_shared<ParentDirectory>(std::make_shared<const DirectoryHandle>(std::move(read)));
}

PlanCursor OpenDirectory::below(std::string_view name) const {
  PlanCursor below = at_;
  below.descend(name);
  return below;
}

Reason OpenDirectory::reason_to_read(const PlanCursor& at, std::uint64_t inode,
                                     const std::optional<DirectoryRow>& stored) const {
  std::optional<ScanPlan::Known> known;
  if (stored) known = ScanPlan::Known::of(*stored);
  const bool was_walked = at.resumed.is_done() && !at_.resumed.is_done();
  return context_.plan->reason(at, inode, known, was_walked ? std::nullopt : std::optional(reason_));
}

void OpenDirectory::add(DirectoryRow child, const std::optional<DirectoryRow>& before) {
  due_sums_.add_child(child);
  if (before) replaced_.add_child(*before);
  if (child.id == 0) child.id = rows_.directories().new_id();
  rows_.directories().put(child);
  const bool keeps_name = before && named(child) == named(*before);
  if (!keeps_name) change_name(child.name, named(child));
}

void OpenDirectory::add_unchanged(const DirectoryRow& child) {
  due_sums_.add_child(child);
  replaced_.add_child(child);
}

void OpenDirectory::forget(const DirectoryRow& child) {
  replaced_.add_child(child);
  change_name(child.name, std::nullopt);
}

DirectoryRow OpenDirectory::keep_so_far(const OpenDirectory* below, const DirectoryRow& row_below) {
  const bool keeps_name =
      below == nullptr || (below->before() && named(*below->before()) == named(row_below));
  if (!keeps_name) change_name(row_below.name, named(row_below));
  put_names();
  // With the row: a scan that finds it in the row's state takes its files for stored.
  put_files();
  was_kept_ = true;
  return row_so_far(below, row_below);
}

// The sums change by what became of those that were due and of the one that is open. With its new times and
// signature, no audit would find a name that is missing, and no mark that comes late would lead to it.
DirectoryRow OpenDirectory::row_so_far(const OpenDirectory* below, const DirectoryRow& row_below) const {
  DirectoryRow now = due_sums_;
  DirectoryRow gone = replaced_;
  if (below != nullptr) {
    now.add_child(row_below);
    if (below->before()) gone.add_child(*below->before());
  }
  DirectoryRow row = row_;
  row.restart_sums(row_.own);
  bool is_whole = has_all_names();
  if (before_) {
    DirectoryRow kept = *before_;  // of what was neither due nor is gone
    kept.remove_child(gone);
    ++kept.directories;  // it is no child itself
    kept.set_state(DirectoryState::ok);
    kept.replace_own({.mtime_ns = std::numeric_limits<std::int64_t>::min()});
    const std::int64_t newest = before_->subtree.mtime_ns;
    const bool may_be_gone = gone.subtree.mtime_ns >= newest || before_->own.mtime_ns >= newest;
    const bool is_saturated = before_->subtree.is_saturated();
    if (is_saturated) kept.subtree = before_->subtree;
    if (is_saturated || (may_be_gone && std::max(now.subtree.mtime_ns, row_.own.mtime_ns) < newest))
      is_whole = false;
    row.add_sums(kept);
  }
  row.add_sums(now);
  // Whether the next scan would not know from anything else that all below it is to be read.
  const bool was_unread = before_ && ScanPlan::Known::of(*before_).all_below_dirty;
  if (was_unread || reason_ == Reason::unknown || reason_ == Reason::other_directory ||
      reason_ == Reason::not_known_below) {
    row.set_state(DirectoryState::unread);
  } else if (!is_whole && row.state == DirectoryState::ok) {
    row.set_state(DirectoryState::incomplete);
  }
  return row;
}

void OpenDirectory::change_name(const std::string& name, std::optional<NamedDirectory> to) {
  names_[name] = to;
  if (names_.size() >= names_max) put_names();
}

void OpenDirectory::put_names() {
  if (row_.id == 0) row_.id = rows_.directories().new_id();
  rows_.directories().put_names(row_.id, names_);
  names_.clear();
}

void OpenDirectory::add_due_sums() {
  put_names();
  row_.add_sums(due_sums_);
}

ChangedDirectory::ChangedDirectory(Start start, Subdirectories found, std::optional<Files> new_files,
                                   WalkContext& context, DriveRows& rows)
    : OpenDirectory(std::move(start), context, rows),
      subdirectories_(std::move(found)),
      new_files_(std::move(new_files)) {}

void ChangedDirectory::decide_next(std::string_view path) {
  const Subdirectory next = subdirectories_[decided_++];
  auto stored = take_stored(path, next.name);
  const PlanCursor at = below(next.name);
  const Reason reason = reason_to_read(at, next.inode, stored);
  if (reason != Reason::clean) {
    due.push_back({std::string(next.name), next.inode, std::move(stored), at, reason});
    return;
  }
  if (!at.resumed.is_done()) context_.figures.dirs_skipped += 1 + stored->directories;
  row_.add_child(*stored);
}

// The stored row of that name. Rows that sort before it are of directories that are gone.
std::optional<DirectoryRow> ChangedDirectory::take_stored(std::string_view path, std::string_view name) {
  for (;;) {
    DirectoryRow* const row = stored_.peek();
    if (row == nullptr || row->name > name) return std::nullopt;
    DirectoryRow taken = std::move(*row);
    stored_.pop();
    if (taken.name == name) return taken;
    erase(path, taken);
  }
}

void ChangedDirectory::erase(std::string_view path, const DirectoryRow& child) {
  forget(child);
  rows_.erase(tracker::join_path(path, child.name), child);
}

bool ChangedDirectory::finish(std::string_view path) {
  while (const DirectoryRow* const gone = stored_.peek()) {
    erase(path, *gone);
    stored_.pop();
  }
  add_due_sums();
  put_files();
  return differs();
}

void ChangedDirectory::put_files() {
  if (new_files_) rows_.add_files(row_.id, *new_files_);
  new_files_.reset();
}

// Nothing below it was left for this scan; no sum is too large to take something out of it again.
bool UnchangedDirectory::may_be_one(const DirectoryRow& stored, Reason reason) {
  const bool is_complete = stored.state == DirectoryState::ok && stored.pending + stored.mount_points == 0;
  return stored.is_read && is_complete && !stored.subtree.is_saturated() && !reads_all_below(reason);
}

void UnchangedDirectory::decide_next(std::string_view /*path*/) {
  if (decided_ == marked_.size()) look_up();
  if (marked_.empty()) return;
  std::optional<DirectoryRow> stored(std::move(marked_[decided_++]));
  const PlanCursor at = below(stored->name);
  const Reason reason = reason_to_read(at, stored->inode, stored);
  if (reason == Reason::clean) return;
  row_.remove_child(*stored);
  skipped_ -= 1 + stored->directories;
  if (stored->subtree.mtime_ns >= before_->subtree.mtime_ns) has_lost_newest_ = true;
  DueDirectory& child = due.emplace_back(DueDirectory{stored->name, stored->inode, {}, at, reason});
  child.stored = std::move(stored);
}

void UnchangedDirectory::look_up() {
  const auto is_marked = [this](std::string_view name) { return below(name).marks.may_be_dirty(); };
  decided_ = 0;
  marked_.clear();
  marked_ = rows_.directories().children(row_.id, last_name_, marked_at_once, is_marked);
  all_looked_up_ = marked_.size() < marked_at_once;
  if (!all_looked_up_) last_name_ = marked_.back().name;
}

// Subdirectories that were not due are skipped, and count as before.
bool UnchangedDirectory::finish(std::string_view /*path*/) {
  add_due_sums();
  context_.figures.dirs_skipped += skipped_;
  if (before_->own.mtime_ns >= before_->subtree.mtime_ns) has_lost_newest_ = true;
  const std::int64_t newest = std::max(due_sums_.subtree.mtime_ns, row_.own.mtime_ns);
  if (has_lost_newest_ && newest < row_.subtree.mtime_ns) {
    const std::int64_t below = rows_.directories().newest_below(row_);
    row_.subtree.mtime_ns = std::max(below, row_.own.mtime_ns);
  }
  return differs();
}

}  // namespace spoor::scanner
