#include "scanner/walk/walker.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "scanner/errors.h"
#include "scanner/walk/directory_identity.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr std::size_t due_in_one_max = 32;  // subdirectories of one directory
constexpr std::size_t decided_at_once = 1024;
constexpr std::size_t anchor_distance = 64;  // levels between directories that stay open

DirectoryRow fresh_row(std::string name, std::uint64_t inode) {
  DirectoryRow row;
  row.name = std::move(name);
  row.inode = inode;
  return row;
}

}  // namespace

Walker::Walker(WalkContext& context, const ScanPlan& plan, const Drive& drive, std::int64_t id, WalkLog* log)
    : context_(context),
      plan_(plan),
      drive_path_(drive.path),
      root_(plan.root(drive.identity)),
      rows_(context, id),
      drive_(id),
      log_(log) {}

base::Result<> Walker::begin(DirectoryRead root, std::optional<DirectoryRow> stored, Reason reason) {
  read_ahead_.emplace(context_.environment.reader, context_.options.rules,
                      ReadAhead::Options{.mount = root.handle.mount,
                                         .threads = context_.readers(),
                                         .parts = context_.listing_parts(),
                                         .stop = context_.environment.stop,
                                         .open_max = context_.open_directories_max() / 4,
                                         .known = known_listings(root.handle),
                                         .taker_reads = !context_.has_other_drives()});
  path_.clear();
  const std::uint64_t inode = root.handle.inode;
  return push({"", inode, std::move(stored), root_, reason}, std::move(root));
}

bool Walker::would_wait() const {
  if (open_.empty() || open_.back()->due.empty()) return false;
  const DueDirectory& next = open_.back()->due.front();
  return next.ticket && !read_ahead_->is_ready(*next.ticket);
}

base::Result<> Walker::step(bool may_wait) {
  if (context_.is_stopped()) return interrupted_error();
  OpenDirectory& directory = *open_.back();
  path_.resize(directory.path_bytes());
  if (auto decided = decide_ahead(directory); !decided) return decided;
  if (auto requested = request_due(directory); !requested) return requested;
  if (!may_wait && would_wait()) return {};
  if (!directory.due.empty()) return visit(directory);
  return directory.all_decided() ? finish() : base::Result<>();
}

base::Result<> Walker::decide_ahead(OpenDirectory& parent) {
  const std::size_t max = due_max();
  const std::size_t due_before = parent.due.size();
  if (due_before > max - max / 4) return {};
  for (std::size_t count = 0; count < decided_at_once; ++count) {
    if (parent.all_decided() || parent.due.size() >= max) break;
    if (auto decided = parent.decide_next(path_); !decided) return decided;
  }
  due_ += parent.due.size() - due_before;
  return {};
}

// How many subdirectories of one directory may be waiting to be read.
std::size_t Walker::due_max() const {
  const std::size_t max = context_.open_directories_max() / 2;
  if (context_.readers() == 0 || due_ >= max) return 1;
  return std::min(due_in_one_max, max - due_);
}

// While a log is replayed, it gives what comes next: no directory is read ahead.
base::Result<> Walker::request_due(OpenDirectory& parent) {
  if (is_replaying()) return {};
  std::vector<ReadAhead::Ticket> tickets;
  for (; parent.requested < parent.due.size(); ++parent.requested) {
    DueDirectory& child = parent.due[parent.requested];
    if (child.ticket) continue;
    context_.pace.wait_until_due(context_.environment.stop);
    if (context_.is_stopped()) return interrupted_error();
    request(child);
    if (child.ticket) tickets.push_back(child.ticket);
  }
  read_ahead_->submit(open_.size(), std::move(tickets));
  // A long chain of directories needs no descriptor a level.
  if (parent.all_decided() && open_.size() > 1) {
    parent.handle.reset();
    parent.closed.reset();
  }
  return {};
}

// Makes a ticket for a subdirectory of the directory that is open last.
void Walker::request(DueDirectory& child) {
  OpenDirectory& parent = *open_.back();
  if (!parent.handle && !parent.closed) parent.closed = closed_again();
  const std::string_view parent_path = std::string_view(path_).substr(0, parent.path_bytes());
  std::string path = tracker::join_path(parent_path, child.name);
  // Marks lead to what is read in any case; where the pace is limited, nothing is read ahead of it.
  std::optional<tracker::DriveCursor> marks;
  std::shared_ptr<const DirectoryRow> stored;
  if (!reads_all_below(child.reason)) {
    const bool may_follow = !is_replaying() && context_.pace.is_unlimited();
    if (may_follow) marks = child.marks;
    if (child.stored) stored = std::make_shared<const DirectoryRow>(*child.stored);
  }
  child.ticket = parent.handle ? ReadAhead::ticket(parent.handle, std::move(path), marks, std::move(stored))
                               : ReadAhead::ticket(parent.closed, std::move(path), marks, std::move(stored));
}

// For the directory that is open last: it was closed meanwhile, or was never opened by this walk.
std::shared_ptr<ClosedDirectory> Walker::closed_again() const {
  const OpenDirectory& directory = *open_.back();
  std::size_t at = open_.size() - 1;
  while (!open_[at]->handle) --at;  // the root's is never closed
  const OpenDirectory& above = *open_[at];
  std::string_view below =
      std::string_view(path_).substr(above.path_bytes(), directory.path_bytes() - above.path_bytes());
  if (below.starts_with('/')) below.remove_prefix(1);
  const DirectoryFacts facts{
      .mount = above.handle->mount, .inode = directory.inode(), .birth = directory.row().birth};
  return std::make_shared<ClosedDirectory>(above.handle, std::string(below), facts);
}

// Nothing where the times of directories don't show whether their entries changed; nor where the rows that
// are committed, which the other threads look up, are not those of this transaction.
std::optional<KnownListings> Walker::known_listings(const DirectoryHandle& root) const {
  if (context_.settled_before_ns == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
  if (!context_.transaction.has_committed_rows()) return std::nullopt;
  if (!context_.environment.reader.changes_times_with_entries(root)) return std::nullopt;
  return KnownListings{
      .stored = context_.transaction.directories(),
      .database = context_.transaction.file(),
      .settled_before_ns = context_.settled_before_ns,
      .must_be_read = [this](std::string_view path) { return context_.is_audited(drive_, path); }};
}

base::Result<> Walker::visit(OpenDirectory& parent) {
  DueDirectory child = std::move(parent.due.front());
  parent.due.pop_front();
  --due_;
  const bool was_requested = parent.requested > 0;
  if (was_requested) --parent.requested;
  if (!path_.empty()) path_ += '/';
  path_ += child.name;
  if (child.reason == Reason::other_directory) {
    if (auto erased = erase_stored(parent, child); !erased) return erased;
  }
  auto found = read(child);
  if (context_.is_stopped()) return interrupted_error();
  if (found) return enter(parent, std::move(child), std::move(*found));
  const base::Error& error = found.error();
  if (error.code == Errc::interrupted) return error;
  if (is_gone(error.code)) return erase_stored(parent, child);
  return leave_unread(parent, std::move(child), error);
}

base::Result<DirectoryRead> Walker::read(DueDirectory& child) {
  if (is_replaying()) {
    if (auto logged = log_->take(path_)) {
      ++context_.dirs_replayed;
      return std::move(*logged);
    }
  }
  if (!child.ticket) {
    context_.pace.wait_until_due(context_.environment.stop);
    if (context_.is_stopped()) return interrupted_error();
    request(child);
  }
  auto found = read_ahead_->take(*child.ticket);
  const bool is_to_be_logged =
      found && !found->is_mount_point && !found->closed && !found->listing.incomplete;
  if (log_ != nullptr && is_to_be_logged) log_->add(path_, *found);
  return found;
}

base::Result<> Walker::enter(OpenDirectory& parent, DueDirectory child, DirectoryRead read) {
  if (read.is_mount_point) return keep_mount_point(parent, std::move(child));
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
  const auto& stored = directory.stored;
  DirectoryRow row = stored ? *stored : fresh_row(std::move(directory.name), directory.inode);
  row.inode = directory.inode;
  row.birth = read.handle.birth;
  const bool is_unchanged = stored && UnchangedDirectory::is_one(*stored, read.listing, directory.reason);
  auto new_files = rows_.take_files(path_, row, read.listing);
  if (!new_files) return new_files.error();
  auto applied = is_unchanged ? rows_.apply_same_listing(path_, row, read.listing)
                              : rows_.apply_listing(path_, row, read.listing);
  if (!applied) return applied;
  if (read.listing.incomplete) context_.add_error(real_path(), read.listing.incomplete->message);
  OpenDirectory::Found found{std::move(read),       std::move(row),   std::move(directory.stored),
                             std::move(*new_files), directory.reason, directory.marks,
                             path_.size()};
  if (is_unchanged) {
    open_.push_back(std::make_unique<UnchangedDirectory>(std::move(found), context_, plan_, rows_));
  } else {
    open_.push_back(std::make_unique<ChangedDirectory>(std::move(found), context_, plan_, rows_));
  }
  close_upper();
  report_progress();
  return {};
}

// Of a deep tree, the lower levels and a few of the upper ones stay open.
void Walker::close_upper() {
  const std::size_t kept = std::max<std::size_t>(context_.open_directories_max() / 4, 1);
  if (open_.size() <= kept) return;
  const std::size_t at = open_.size() - 1 - kept;
  if (at % anchor_distance == 0) return;
  open_[at]->handle.reset();
  open_[at]->closed.reset();  // it holds one that is open
}

base::Result<> Walker::finish() {
  const std::unique_ptr<OpenDirectory> directory = std::move(open_.back());
  open_.pop_back();
  const auto is_other = directory->finish(path_);
  if (!is_other) return is_other.error();
  if (*is_other) context_.touched.add(path_);
  if (open_.empty()) {
    read_ahead_.reset();  // nothing on the drive stays open while others are walked
    return *is_other ? rows_.put_root(directory->row(), directory->before()) : base::Result<>();
  }
  if (*is_other) return open_.back()->add(directory->take_row(), directory->before());
  open_.back()->add_unchanged(directory->row());
  return {};
}

// Removes what is stored under the child's name: that directory is gone.
base::Result<> Walker::erase_stored(OpenDirectory& parent, DueDirectory& child) {
  if (!child.stored) return {};
  if (auto forgotten = parent.forget(child.name); !forgotten) return forgotten;
  auto erased = rows_.erase(path_, *child.stored);
  child.stored.reset();
  return erased;
}

base::Result<> Walker::leave_unread(OpenDirectory& parent, DueDirectory child, const base::Error& error) {
  context_.add_error(real_path(), error.message);
  DirectoryRow row = child.stored ? *child.stored : fresh_row(std::move(child.name), child.inode);
  row.set_state(DirectoryState::unread);
  context_.touched.add(path_);
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
    if (auto erased = rows_.erase_mounted_over(path_, *child.stored); !erased) return erased;
  }
  DirectoryRow row = fresh_row(std::move(child.name), child.inode);
  row.set_state(DirectoryState::mount_point);
  context_.touched.add(path_);
  context_.add_mount(real_path());
  return parent.add(std::move(row), std::nullopt);
}

void Walker::report_progress() const {
  const auto& report = context_.environment.progress;
  const std::uint64_t every = std::max<std::uint64_t>(context_.options.progress_every, 1);
  if (!report || context_.figures.dirs_walked % every != 0) return;
  std::uint64_t done = context_.figures.dirs_walked + context_.figures.dirs_skipped;
  for (const auto& directory : open_) done += directory->skipped_so_far();
  report({context_.figures, done, context_.dirs_known, real_path()});
}

std::string Walker::real_path() const {
  return path_.empty() ? drive_path_.native() : (drive_path_ / path_).native();
}

}  // namespace spoor::scanner
