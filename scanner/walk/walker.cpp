#include "scanner/walk/walker.h"

#include <algorithm>
#include <utility>

#include "scanner/errors.h"
#include "scanner/walk/directory_identity.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr std::size_t anchor_distance = 64;  // levels between directories that stay open

DirectoryRow fresh_row(std::string name, std::uint64_t inode) {
  DirectoryRow row;
  row.name = std::move(name);
  row.inode = inode;
  return row;
}

}  // namespace

Walker::Walker(WalkContext& context, const ScanPlan& plan, const PlanCursor& root, const Drive& drive,
               std::int64_t id)
    : context_(context), plan_(plan), drive_path_(drive.path), root_(root), rows_(context, id), drive_(id) {}

base::Result<> Walker::begin(DirectoryRead root, std::optional<DirectoryRow> stored, Reason reason) {
  planner_.emplace(context_, plan_, rows_, drive_, stack_, root.handle);
  stack_.path.clear();
  const std::uint64_t inode = root.handle.inode;
  return push(DueDirectory("", inode, std::move(stored), root_, reason), std::move(root));
}

base::Result<> Walker::step(bool may_wait) {
  if (context_.is_stopped()) return interrupted_error();
  OpenDirectory& directory = *stack_.open.back();
  stack_.path.resize(directory.path_bytes());
  if (auto planned = planner_->plan_ahead(); !planned) return planned;
  if (!may_wait && would_wait()) return {};
  if (!directory.due.empty()) return visit(directory);
  return directory.all_decided() ? finish() : base::Result<>();
}

base::Result<> Walker::visit(OpenDirectory& parent) {
  DueDirectory child = planner_->take_next(parent);
  if (!stack_.path.empty()) stack_.path += '/';
  stack_.path += child.name;
  if (child.reason == Reason::other_directory) {
    if (auto erased = erase_stored(parent, child); !erased) return erased;
  }
  auto found = planner_->read(parent, child);
  if (context_.is_stopped()) return interrupted_error();
  if (found && !found->is_mount_point) return enter(parent, std::move(child), std::move(*found));
  planner_->drop(child);
  planner_->drop_early();
  parent.last_done = child.name;
  if (found) return keep_mount_point(parent, std::move(child));
  const base::Error& error = found.error();
  if (error.code == Errc::interrupted) return error;
  if (is_gone(error.code)) return erase_stored(parent, child);
  return leave_unread(parent, std::move(child), error);
}

base::Result<> Walker::enter(OpenDirectory& parent, DueDirectory child, DirectoryRead read) {
  // The listing's inode number may have been given to another directory since the last scan.
  if (child.stored && is_another(*child.stored, read.handle)) {
    child.reason = Reason::other_directory;
    if (auto erased = erase_stored(parent, child); !erased) return erased;
  } else if (child.stored && !reads_all_below(child.reason) && may_be_another(*child.stored, read.handle)) {
    child.reason = Reason::not_known_below;
  }
  return push(std::move(child), std::move(read));
}

base::Result<> Walker::push(DueDirectory directory, DirectoryRead read) {
  // What was planned below it was sought in a directory with the inode number that its listing gave.
  if (read.handle.inode != directory.inode) planner_->drop(directory);
  const auto unchanged = is_unchanged(directory, read);
  if (!unchanged) return unchanged.error();
  if (*unchanged) return push_unchanged(std::move(directory), std::move(read));
  planner_->drop(directory);
  return push_changed(std::move(directory), std::move(read));
}

// Whether its subdirectories are those that are stored, so that what is stored of them holds where it is not
// marked.
base::Result<bool> Walker::is_unchanged(const DueDirectory& directory, const DirectoryRead& read) {
  const bool may_be = directory.stored && UnchangedDirectory::may_be_one(*directory.stored, directory.reason);
  if (!may_be || read.listing.incomplete) return false;
  if (read.is_known) return true;
  Totals largest = directory.stored->subtree;
  largest.add(read.listing.own);
  if (largest.is_saturated()) return false;  // nothing could be taken out of the sums any more
  if (directory.stored->directories == 0) return read.listing.subdirectories.empty();
  return rows_.directories().has_children(directory.stored->id, read.listing.subdirectories);
}

base::Result<> Walker::push_unchanged(DueDirectory directory, DirectoryRead read) {
  std::unique_ptr<UnchangedDirectory> unchanged = std::move(directory.planned);
  if (!unchanged) {
    unchanged = std::make_unique<UnchangedDirectory>(
        OpenDirectory::Start{*directory.stored, std::move(directory.stored), directory.reason, directory.at,
                             stack_.path.size()},
        context_, plan_, rows_);
    planner_->add(*unchanged);
  }
  DirectoryRow& row = unchanged->row();
  row.birth = read.handle.birth;
  if (read.is_known) {
    ++context_.figures.dirs_walked;
  } else {
    if (auto kept = rows_.take_files(stack_.path, row, read.listing); !kept) return kept.error();
    if (auto applied = rows_.apply_listing(stack_.path, row, read.listing, true); !applied) return applied;
  }
  open(std::move(unchanged), std::move(read.handle));
  return {};
}

base::Result<> Walker::push_changed(DueDirectory directory, DirectoryRead read) {
  DirectoryRow row =
      directory.stored ? *directory.stored : fresh_row(std::move(directory.name), directory.inode);
  row.inode = directory.inode;
  row.birth = read.handle.birth;
  auto new_files = rows_.take_files(stack_.path, row, read.listing);
  if (!new_files) return new_files.error();
  if (auto applied = rows_.apply_listing(stack_.path, row, read.listing, false); !applied) return applied;
  if (read.listing.incomplete) context_.add_error(real_path(), read.listing.incomplete->message);
  auto changed = std::make_unique<ChangedDirectory>(
      OpenDirectory::Start{std::move(row), std::move(directory.stored), directory.reason, directory.at,
                           stack_.path.size()},
      std::move(read.listing.subdirectories), *std::move(new_files), context_, plan_, rows_);
  planner_->add(*changed);
  open(std::move(changed), std::move(read.handle));
  return {};
}

void Walker::open(std::unique_ptr<OpenDirectory> directory, DirectoryHandle handle) {
  directory->set_open(std::move(handle));
  stack_.open.push_back(std::move(directory));
  close_upper();
  report_progress();
}

// Of a deep tree, the lower levels and a few of the upper ones stay open.
void Walker::close_upper() {
  const std::size_t kept = std::max<std::size_t>(context_.open_directories_max() / 4, 1);
  if (stack_.open.size() <= kept) return;
  const std::size_t at = stack_.open.size() - 1 - kept;
  if (at % anchor_distance == 0) return;
  stack_.open[at]->handle.reset();
  stack_.open[at]->closed.reset();  // it holds one that is open
}

base::Result<> Walker::finish() {
  const std::unique_ptr<OpenDirectory> directory = std::move(stack_.open.back());
  stack_.open.pop_back();
  planner_->finish(*directory);
  const auto is_other = directory->finish(stack_.path);
  if (!is_other) return is_other.error();
  if (*is_other) context_.touched.add(stack_.path);
  if (stack_.open.empty()) {
    planner_.reset();  // nothing on the drive stays open while others are walked
    return *is_other ? rows_.put_root(directory->row(), directory->before()) : base::Result<>();
  }
  stack_.open.back()->last_done = directory->row().name;
  if (*is_other) return stack_.open.back()->add(directory->take_row(), directory->before());
  stack_.open.back()->add_unchanged(directory->row());
  return {};
}

// From the deepest one up, since each has the sums of those below it.
base::Result<> Walker::keep_so_far() {
  const OpenDirectory* below = nullptr;
  DirectoryRow row_below;
  for (std::size_t at = stack_.open.size(); at > 0; --at) {
    OpenDirectory& directory = *stack_.open[at - 1];
    auto row = directory.keep_so_far(below, row_below);
    if (!row) return row.error();
    auto put = at == 1 ? rows_.put_root(*row, directory.before()) : rows_.directories().put(*row);
    if (!put) return put;
    context_.touched.add(std::string_view(stack_.path).substr(0, directory.path_bytes()));
    below = &directory;
    row_below = std::move(*row);
  }
  return {};
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
base::Result<> Walker::erase_stored(OpenDirectory& parent, DueDirectory& child) {
  if (!child.stored) return {};
  planner_->drop(child);
  if (auto forgotten = parent.forget(*child.stored); !forgotten) return forgotten;
  auto erased = rows_.erase(stack_.path, *child.stored);
  child.stored.reset();
  return erased;
}

base::Result<> Walker::leave_unread(OpenDirectory& parent, DueDirectory child, const base::Error& error) {
  context_.add_error(real_path(), error.message);
  DirectoryRow row = child.stored ? *child.stored : fresh_row(std::move(child.name), child.inode);
  row.set_state(DirectoryState::unread);
  context_.touched.add(stack_.path);
  return parent.add(std::move(row), child.stored);
}

// A mount point counts as an empty directory. What was known of it is of before the mount, or of what the
// mount hides; its inode is that of the directory beneath, whose birth can't be seen. Its row has another id:
// what is read there later is new, and changes of files recorded under the old id are not those of it.
base::Result<> Walker::keep_mount_point(OpenDirectory& parent, DueDirectory child) {
  const bool is_known = child.stored && child.stored->state == DirectoryState::mount_point &&
                        child.stored->inode == child.inode;
  if (is_known) {
    context_.add_mount(real_path());
    parent.add_unchanged(*child.stored);
    return {};
  }
  if (child.stored) {
    if (auto erased = rows_.erase_mounted_over(stack_.path, *child.stored); !erased) return erased;
  }
  DirectoryRow row = fresh_row(std::move(child.name), child.inode);
  row.set_state(DirectoryState::mount_point);
  context_.touched.add(stack_.path);
  context_.add_mount(real_path());
  return parent.add(std::move(row), child.stored);
}

void Walker::report_progress() const {
  const auto& report = context_.environment.progress;
  const std::uint64_t every = std::max<std::uint64_t>(context_.options.progress_every, 1);
  if (!report || context_.figures.dirs_walked % every != 0) return;
  const std::uint64_t done = context_.figures.dirs_walked + context_.figures.dirs_skipped;
  report({context_.figures, done, context_.dirs_known, real_path()});
}

std::string Walker::real_path() const {
  return stack_.path.empty() ? drive_path_.native() : (drive_path_ / stack_.path).native();
}

}  // namespace spoor::scanner
