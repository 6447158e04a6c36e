#include "scanner/walk/walker.h"

#include <algorithm>
#include <utility>

#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr std::size_t anchor_distance = 64;  // levels between directories that stay open

// The row that is stored, or that of a new directory.
DirectoryRow row_of(DueDirectory& directory) {
  if (directory.stored) return *directory.stored;
  DirectoryRow row;
  row.name = std::move(directory.name);
  row.inode = directory.inode;
  return row;
}

}  // namespace

void Walker::begin(DirectoryRead root, std::optional<DirectoryRow> stored, Reason reason) {
  planner_.emplace(context_, rows_, stack_, root.handle);
  stack_.path.clear();
  const std::uint64_t inode = root.handle.inode;
  push({"", inode, std::move(stored), root_, reason}, std::move(root));
}

void Walker::step(bool may_wait) {
  context_.throw_if_stopped();
  OpenDirectory& directory = *stack_.open.back();
  stack_.path.resize(directory.path_bytes());
  planner_->plan_ahead();
  if (!may_wait && would_wait()) return;
  if (!directory.due.empty()) return visit(directory);
  if (directory.all_decided()) finish();
}

void Walker::visit(OpenDirectory& parent) {
  DueDirectory child = planner_->take_next(parent);
  if (!stack_.path.empty()) stack_.path += '/';
  stack_.path += child.name;
  if (child.reason == Reason::other_directory) erase_stored(parent, child);
  auto found = planner_->read(parent, child);
  context_.throw_if_stopped();
  if (found && !found->is_mount_point) return enter(parent, std::move(child), std::move(*found));
  planner_->drop(child);
  planner_->drop_early();
  parent.last_done = child.name;
  if (found) return keep_mount_point(parent, std::move(child));
  if (is_gone(found.error().code)) return erase_stored(parent, child);
  leave_unread(parent, std::move(child), found.error());
}

void Walker::enter(OpenDirectory& parent, DueDirectory child, DirectoryRead read) {
  // The listing's inode number may have been given to another directory since the last scan.
  if (child.stored && is_another(*child.stored, read.handle)) {
    child.reason = Reason::other_directory;
    erase_stored(parent, child);
  } else if (child.stored && !reads_all_below(child.reason) && may_be_another(*child.stored, read.handle)) {
    child.reason = Reason::not_known_below;
  }
  push(std::move(child), std::move(read));
}

void Walker::push(DueDirectory directory, DirectoryRead read) {
  // What was planned below it was sought in a directory with the inode number that its listing gave.
  if (read.handle.inode != directory.inode) planner_->drop(directory);
  const bool is_same = is_unchanged(directory, read);
  if (!is_same) planner_->drop(directory);
  stack_.open.push_back(is_same ? unchanged(std::move(directory), read)
                                : changed(std::move(directory), read));
  stack_.open.back()->set_open(std::move(read.handle));
  close_upper();
  report_progress();
}

// Whether its subdirectories are those that are stored, so that what is stored of them holds where it is not
// marked.
bool Walker::is_unchanged(const DueDirectory& directory, const DirectoryRead& read) {
  const bool may_be = directory.stored && UnchangedDirectory::may_be_one(*directory.stored, directory.reason);
  if (!may_be || read.listing.incomplete) return false;
  if (read.is_known) return true;
  Totals largest = directory.stored->subtree;
  largest.add(read.listing.own);
  if (largest.is_saturated()) return false;  // nothing could be taken out of the sums any more
  if (directory.stored->directories == 0) return read.listing.subdirectories.empty();
  return rows_.directories().has_children(directory.stored->id, read.listing.subdirectories);
}

std::unique_ptr<OpenDirectory> Walker::unchanged(DueDirectory directory, DirectoryRead& read) {
  std::unique_ptr<OpenDirectory> unchanged = std::move(directory.planned);
  if (!unchanged) {
    unchanged = std::make_unique<UnchangedDirectory>(
        OpenDirectory::Start{*directory.stored, std::move(directory.stored), directory.reason, directory.at,
                             stack_.path.size()},
        context_, rows_);
    planner_->add(*unchanged);
  }
  DirectoryRow& row = unchanged->row();
  row.birth = read.handle.birth;
  if (read.is_known) {
    ++context_.figures.dirs_walked;
  } else {
    rows_.take_files(stack_.path, row, read.listing);
    rows_.apply_listing(stack_.path, row, read.listing, true);
  }
  return unchanged;
}

std::unique_ptr<OpenDirectory> Walker::changed(DueDirectory directory, DirectoryRead& read) {
  DirectoryRow row = row_of(directory);
  row.inode = directory.inode;
  row.birth = read.handle.birth;
  auto new_files = rows_.take_files(stack_.path, row, read.listing);
  rows_.apply_listing(stack_.path, row, read.listing, false);
  if (read.listing.incomplete) context_.add_error(real_path(), read.listing.incomplete->message);
  auto changed = std::make_unique<ChangedDirectory>(
      OpenDirectory::Start{std::move(row), std::move(directory.stored), directory.reason, directory.at,
                           stack_.path.size()},
      std::move(read.listing.subdirectories), std::move(new_files), context_, rows_);
  planner_->add(*changed);
  return changed;
}

// Of a deep tree, the lower levels and a few of the upper ones stay open.
void Walker::close_upper() {
  const std::size_t kept = std::max<std::size_t>(context_.open_directories_max() / 4, 1);
  if (stack_.open.size() <= kept) return;
  const std::size_t at = stack_.open.size() - 1 - kept;
  if (at % anchor_distance != 0) stack_.open[at]->place.reset();
}

void Walker::finish() {
  const std::unique_ptr<OpenDirectory> directory = std::move(stack_.open.back());
  stack_.open.pop_back();
  planner_->finish(*directory);
  const bool is_other = directory->finish(stack_.path);
  if (is_other) context_.touched.add(stack_.path);
  if (stack_.open.empty()) {
    planner_.reset();  // nothing on the drive stays open while others are walked
    if (is_other) rows_.put_root(directory->row(), directory->before());
    return;
  }
  OpenDirectory& parent = *stack_.open.back();
  parent.last_done = directory->row().name;
  if (is_other) {
    parent.add(directory->take_row(), directory->before());
  } else {
    parent.add_unchanged(directory->row());
  }
}

// From the deepest one up, since each has the sums of those below it.
void Walker::keep_so_far() {
  const OpenDirectory* below = nullptr;
  DirectoryRow row_below;
  for (std::size_t at = stack_.open.size(); at > 0; --at) {
    OpenDirectory& directory = *stack_.open[at - 1];
    row_below = directory.keep_so_far(below, row_below);
    if (at == 1) {
      rows_.put_root(row_below, directory.before());
    } else {
      rows_.directories().put(row_below);
    }
    context_.touched.add(std::string_view(stack_.path).substr(0, directory.path_bytes()));
    below = &directory;
  }
}

std::optional<std::string> Walker::place() const {
  const OpenDirectory& directory = *stack_.open.back();
  ResumePoint last = directory.resumed();
  if (!directory.last_done.empty()) last.descend(directory.last_done);
  const bool was_open = directory.last_done.empty() && last.is_on_the_way();
  if (last.is_done() || was_open) return std::nullopt;
  return tracker::join_path(std::string_view(stack_.path).substr(0, directory.path_bytes()),
                            directory.last_done);
}

// Removes what is stored under the child's name: that directory is gone.
void Walker::erase_stored(OpenDirectory& parent, DueDirectory& child) {
  if (!child.stored) return;
  planner_->drop(child);
  parent.forget(*child.stored);
  rows_.erase(stack_.path, *child.stored);
  child.stored.reset();
}

void Walker::leave_unread(OpenDirectory& parent, DueDirectory child, const base::Error& error) {
  context_.add_error(real_path(), error.message);
  DirectoryRow row = row_of(child);
  row.set_state(DirectoryState::unread);
  context_.touched.add(stack_.path);
  parent.add(std::move(row), child.stored);
}

// A mount point counts as an empty directory. What was known of it is of before the mount, or of what the
// mount hides; its inode is that of the directory beneath, whose birth can't be seen. Its row has another id:
// what is read there later is new, and changes of files recorded under the old id are not those of it.
void Walker::keep_mount_point(OpenDirectory& parent, DueDirectory child) {
  context_.add_mount(real_path());
  const std::optional<DirectoryRow> before = std::move(child.stored);
  if (before && before->state == DirectoryState::mount_point && before->inode == child.inode)
    return parent.add_unchanged(*before);
  if (before) rows_.erase_mounted_over(stack_.path, *before);
  child.stored.reset();
  DirectoryRow row = row_of(child);
  row.set_state(DirectoryState::mount_point);
  context_.touched.add(stack_.path);
  parent.add(std::move(row), before);
}

void Walker::report_progress() const {
  const auto& report = context_.environment.progress;
  const std::uint64_t every = std::max<std::uint64_t>(context_.options.progress_every, 1);
  if (!report || context_.figures.dirs_walked % every != 0) return;
  const std::uint64_t done = context_.figures.dirs_walked + context_.figures.dirs_skipped;
  report({context_.figures, done, context_.dirs_known, real_path()});
}

std::string Walker::real_path() const {
  return stack_.path.empty() ? drive_.path.native() : (drive_.path / stack_.path).native();
}

}  // namespace spoor::scanner
