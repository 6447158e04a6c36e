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

OpenDirectory::OpenDirectory(Found found, WalkContext& context, const ScanPlan& plan, DriveRows& rows)
    : handle(std::move(found.read.shared)),
      closed(std::move(found.read.closed)),
      context_(context),
      rows_(rows),
      row_(std::move(found.row)),
      before_(std::move(found.before)),
      subdirectories_(std::move(found.read.listing.subdirectories)),
      plan_(plan),
      inode_(found.read.handle.inode),
      marked_(std::move(found.read.marked)),
      new_files_(std::move(found.new_files)),
      reason_(found.reason),
      marks_(found.marks),
      path_bytes_(found.path_bytes) {
  due_sums_.subtree.mtime_ns = std::numeric_limits<std::int64_t>::min();
  const bool is_open = found.read.handle.descriptor >= 0;
  if (is_open) handle = std::make_shared<const DirectoryHandle>(std::move(found.read.handle));
}

OpenDirectory::Next OpenDirectory::next() {
  Next next{subdirectories_[decided_], marks_, nullptr};
  next.marks.descend(next.entry.name);
  if (marked_ && marked_decided_ < marked_->size() && (*marked_)[marked_decided_].number == decided_) {
    next.ticket = std::move((*marked_)[marked_decided_++].ticket);
  }
  ++decided_;
  return next;
}

void OpenDirectory::skip_to_marked() {
  if (!marked_) return;
  decided_ = marked_decided_ < marked_->size() ? (*marked_)[marked_decided_].number : subdirectories_.size();
}

Reason OpenDirectory::reason_to_read(const Next& next, const std::optional<DirectoryRow>& stored) const {
  std::optional<ScanPlan::Known> known;
  if (stored) known = ScanPlan::Known::of(*stored);
  return plan_.reason(next.marks, next.entry.inode, known, reason_);
}

void OpenDirectory::add_due(Next next, std::optional<DirectoryRow> stored, Reason reason) {
  due.emplace_back(std::string(next.entry.name), next.entry.inode, std::move(stored), next.marks, reason,
                   std::move(next.ticket));
}

base::Result<> OpenDirectory::add(DirectoryRow child, const std::optional<DirectoryRow>& before) {
  due_sums_.add_child(child);
  if (child.id == 0) child.id = rows_.directories().new_id();
  if (auto put = rows_.directories().put(child); !put) return put;
  const bool keeps_name = before && named(child) == named(*before);
  return keeps_name ? base::Result<>() : change_name(child.name, named(child));
}

base::Result<> OpenDirectory::forget(const std::string& name) { return change_name(name, std::nullopt); }

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

base::Result<bool> OpenDirectory::finish(std::string_view path) {
  if (auto summed = sum_up(path); !summed) return summed.error();
  if (new_files_) {
    if (auto added = rows_.add_files(row_.id, *new_files_); !added) return added.error();
  }
  if (!before_) return true;
  return row_ != *before_;
}

base::Result<> ChangedDirectory::decide_next(std::string_view path) {
  Next subdirectory = next();
  auto stored = take_stored(path, subdirectory.entry.name);
  if (!stored) return stored.error();
  const Reason reason = reason_to_read(subdirectory, *stored);
  if (reason != Reason::clean) {
    add_due(std::move(subdirectory), std::move(*stored), reason);
    return {};
  }
  context_.figures.dirs_skipped += 1 + (*stored)->directories;
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
  if (auto forgotten = forget(child.name); !forgotten) return forgotten;
  return rows_.erase(tracker::join_path(path, child.name), child);
}

base::Result<> ChangedDirectory::sum_up(std::string_view path) {
  for (;;) {
    auto gone = stored_.peek();
    if (!gone) return gone.error();
    if (*gone == nullptr) return add_due_sums();
    if (auto erased = erase(path, **gone); !erased) return erased;
    stored_.pop();
  }
}

// Nothing below it was left for this scan; no sum is too large to take something out of it again.
bool UnchangedDirectory::is_one(const DirectoryRow& stored, const Listing& listing, Reason reason) {
  const bool has_same_entries = stored.is_read && !stored.is_racy && !listing.incomplete &&
                                stored.signature == listing.signature && stored.own == listing.own;
  const bool is_complete = stored.state == DirectoryState::ok && stored.pending + stored.mount_points == 0;
  return has_same_entries && is_complete && !stored.subtree.is_saturated() && !reads_all_below(reason);
}

base::Result<> UnchangedDirectory::decide_next(std::string_view /*path*/) {
  skip_to_marked();
  if (all_decided()) return {};
  Next subdirectory = next();
  if (!subdirectory.marks.may_be_dirty()) return {};
  auto stored = find_stored(subdirectory);
  if (!stored) return stored.error();
  const Reason reason = reason_to_read(subdirectory, *stored);
  if (reason == Reason::clean) return {};
  if (*stored) take_out(**stored);
  add_due(std::move(subdirectory), std::move(*stored), reason);
  return {};
}

// Most of them were looked up by a thread that read ahead.
base::Result<std::optional<DirectoryRow>> UnchangedDirectory::find_stored(const Next& subdirectory) {
  const DirectoryRow* const found = subdirectory.ticket ? ReadAhead::stored(*subdirectory.ticket) : nullptr;
  if (found != nullptr) return std::optional(*found);
  return rows_.directories().find(row_.id, subdirectory.entry.name);
}

void UnchangedDirectory::take_out(const DirectoryRow& child) {
  row_.remove_child(child);
  skipped_ -= 1 + child.directories;
  if (child.subtree.mtime_ns >= row_.subtree.mtime_ns) has_lost_newest_ = true;
}

std::uint64_t UnchangedDirectory::skipped_so_far() const {
  return decided_ == 0 ? 0 : skipped_ * decided_ / subdirectories_.size();
}

// Subdirectories that were not due are skipped, and count as before.
base::Result<> UnchangedDirectory::sum_up(std::string_view /*path*/) {
  if (auto added = add_due_sums(); !added) return added;
  context_.figures.dirs_skipped += skipped_;
  const std::int64_t newest = std::max(due_sums_.subtree.mtime_ns, row_.own.mtime_ns);
  if (!has_lost_newest_ || newest >= row_.subtree.mtime_ns) return {};
  const auto below = rows_.directories().newest_below(row_);
  if (!below) return below.error();
  row_.subtree.mtime_ns = std::max(*below, row_.own.mtime_ns);
  return {};
}

}  // namespace spoor::scanner
