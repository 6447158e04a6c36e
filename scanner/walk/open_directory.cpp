#include "scanner/walk/open_directory.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr std::size_t names_max = 512;  // that are put together

}  // namespace

DueDirectory::DueDirectory(std::string its_name, std::uint64_t its_inode, std::optional<DirectoryRow> its_row,
                           const PlanCursor& its_place, Reason why)
    : name(std::move(its_name)), inode(its_inode), stored(std::move(its_row)), at(its_place), reason(why) {}

DueDirectory::DueDirectory(DueDirectory&&) noexcept = default;
DueDirectory& DueDirectory::operator=(DueDirectory&&) noexcept = default;
DueDirectory::~DueDirectory() = default;

OpenDirectory::OpenDirectory(Start start, WalkContext& context, const ScanPlan& plan, DriveRows& rows)
    : context_(context),
      rows_(rows),
      row_(std::move(start.row)),
      before_(std::move(start.before)),
      plan_(plan),
      reason_(start.reason),
      at_(start.at),
      path_bytes_(start.path_bytes),
      inode_(row_.inode) {
  due_sums_.subtree.mtime_ns = std::numeric_limits<std::int64_t>::min();
}

void OpenDirectory::set_open(DirectoryHandle read) {
  inode_ = read.inode;
  if (read.descriptor >= 0) handle = std::make_shared<const DirectoryHandle>(std::move(read));
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
  return plan_.reason(at, inode, known, was_walked ? std::nullopt : std::optional(reason_));
}

void OpenDirectory::add_due(std::string name, std::uint64_t inode, std::optional<DirectoryRow> stored,
                            const PlanCursor& at, Reason reason) {
  due.emplace_back(std::move(name), inode, std::move(stored), at, reason);
}

base::Result<> OpenDirectory::add(DirectoryRow child, const std::optional<DirectoryRow>& before) {
  due_sums_.add_child(child);
  if (before) replaced_.add_child(*before);
  if (child.id == 0) child.id = rows_.directories().new_id();
  if (auto put = rows_.directories().put(child); !put) return put;
  const bool keeps_name = before && named(child) == named(*before);
  return keeps_name ? base::Result<>() : change_name(child.name, named(child));
}

void OpenDirectory::add_unchanged(const DirectoryRow& child) {
  due_sums_.add_child(child);
  replaced_.add_child(child);
}

base::Result<> OpenDirectory::forget(const DirectoryRow& child) {
  replaced_.add_child(child);
  return change_name(child.name, std::nullopt);
}

base::Result<DirectoryRow> OpenDirectory::keep_so_far(const OpenDirectory* below,
                                                      const DirectoryRow& row_below) {
  const bool keeps_name =
      below == nullptr || (below->before() && named(*below->before()) == named(row_below));
  if (!keeps_name) {
    if (auto renamed = change_name(row_below.name, named(row_below)); !renamed) return renamed.error();
  }
  if (auto put = put_names(); !put) return put.error();
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
  if (must_be_read_below()) {
    row.set_state(DirectoryState::unread);
  } else if (!is_whole && row.state == DirectoryState::ok) {
    row.set_state(DirectoryState::incomplete);
  }
  return row;
}

// Whether the next scan would not know from anything else that all below it is to be read.
bool OpenDirectory::must_be_read_below() const {
  const bool was_unread = before_ && ScanPlan::Known::of(*before_).all_below_dirty;
  return was_unread || reason_ == Reason::unknown || reason_ == Reason::other_directory ||
         reason_ == Reason::not_known_below;
}

base::Result<> OpenDirectory::change_name(const std::string& name, std::optional<NamedDirectory> to) {
  names_[name] = to;
  return names_.size() < names_max ? base::Result<>() : put_names();
}

base::Result<> OpenDirectory::put_names() {
  if (row_.id == 0) row_.id = rows_.directories().new_id();
  if (auto put = rows_.directories().put_names(row_.id, names_); !put) return put;
  names_.clear();
  return {};
}

base::Result<> OpenDirectory::add_due_sums() {
  if (auto put = put_names(); !put) return put;
  row_.add_sums(due_sums_);
  return {};
}

ChangedDirectory::ChangedDirectory(Start start, Subdirectories found, std::optional<Files> new_files,
                                   WalkContext& context, const ScanPlan& plan, DriveRows& rows)
    : OpenDirectory(std::move(start), context, plan, rows),
      subdirectories_(std::move(found)),
      new_files_(std::move(new_files)) {}

base::Result<> ChangedDirectory::decide_next(std::string_view path) {
  const Subdirectory next = subdirectories_[decided_++];
  auto stored = take_stored(path, next.name);
  if (!stored) return stored.error();
  const PlanCursor at = below(next.name);
  const Reason reason = reason_to_read(at, next.inode, *stored);
  if (reason != Reason::clean) {
    add_due(std::string(next.name), next.inode, std::move(*stored), at, reason);
    return {};
  }
  if (!at.resumed.is_done()) context_.figures.dirs_skipped += 1 + (*stored)->directories;
  row_.add_child(**stored);
  return {};
}

// The stored row of that name. Rows that sort before it are of directories that are gone.
base::Result<std::optional<DirectoryRow>> ChangedDirectory::take_stored(std::string_view path,
                                                                        std::string_view name) {
  for (;;) {
    auto row = stored_.peek();
    if (!row) return row.error();
    if (*row == nullptr || (*row)->name > name) return std::optional<DirectoryRow>();
    std::optional<DirectoryRow> taken(std::move(**row));
    stored_.pop();
    if (taken->name == name) return taken;
    if (auto erased = erase(path, *taken); !erased) return erased.error();
  }
}

base::Result<> ChangedDirectory::erase(std::string_view path, const DirectoryRow& child) {
  if (auto forgotten = forget(child); !forgotten) return forgotten;
  return rows_.erase(tracker::join_path(path, child.name), child);
}

base::Result<bool> ChangedDirectory::finish(std::string_view path) {
  for (;;) {
    auto gone = stored_.peek();
    if (!gone) return gone.error();
    if (*gone == nullptr) break;
    if (auto erased = erase(path, **gone); !erased) return erased.error();
    stored_.pop();
  }
  if (auto added = add_due_sums(); !added) return added.error();
  if (new_files_) {
    if (auto added = rows_.add_files(row_.id, *new_files_); !added) return added.error();
  }
  return differs();
}

// Nothing below it was left for this scan; no sum is too large to take something out of it again.
bool UnchangedDirectory::may_be_one(const DirectoryRow& stored, Reason reason) {
  const bool is_complete = stored.state == DirectoryState::ok && stored.pending + stored.mount_points == 0;
  return stored.is_read && is_complete && !stored.subtree.is_saturated() && !reads_all_below(reason);
}

base::Result<> UnchangedDirectory::decide_next(std::string_view /*path*/) {
  if (decided_ == marked_.size()) {
    if (auto found = look_up(); !found) return found;
    if (marked_.empty()) return {};
  }
  std::optional<DirectoryRow> stored(std::move(marked_[decided_++]));
  const PlanCursor at = below(stored->name);
  const Reason reason = reason_to_read(at, stored->inode, stored);
  if (reason == Reason::clean) return {};
  take_out(*stored);
  std::string name = stored->name;
  const std::uint64_t inode = stored->inode;
  add_due(std::move(name), inode, std::move(stored), at, reason);
  return {};
}

base::Result<> UnchangedDirectory::look_up() {
  const auto is_marked = [this](std::string_view name) { return below(name).marks.may_be_dirty(); };
  decided_ = 0;
  marked_.clear();
  auto found = rows_.directories().children(row_.id, last_name_, marked_at_once, is_marked);
  if (!found) return found.error();
  marked_ = *std::move(found);
  all_looked_up_ = marked_.size() < marked_at_once;
  if (!all_looked_up_) last_name_ = marked_.back().name;
  return {};
}

void UnchangedDirectory::take_out(const DirectoryRow& child) {
  row_.remove_child(child);
  skipped_ -= 1 + child.directories;
  if (child.subtree.mtime_ns >= before_->subtree.mtime_ns) has_lost_newest_ = true;
}

// Subdirectories that were not due are skipped, and count as before.
base::Result<bool> UnchangedDirectory::finish(std::string_view /*path*/) {
  if (auto added = add_due_sums(); !added) return added.error();
  context_.figures.dirs_skipped += skipped_;
  if (before_->own.mtime_ns >= before_->subtree.mtime_ns) has_lost_newest_ = true;
  const std::int64_t newest = std::max(due_sums_.subtree.mtime_ns, row_.own.mtime_ns);
  if (has_lost_newest_ && newest < row_.subtree.mtime_ns) {
    const auto below = rows_.directories().newest_below(row_);
    if (!below) return below.error();
    row_.subtree.mtime_ns = std::max(*below, row_.own.mtime_ns);
  }
  return differs();
}

}  // namespace spoor::scanner
