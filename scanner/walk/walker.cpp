#include "scanner/walk/walker.h"

#include <algorithm>
#include <utility>

#include "scanner/errors.h"
#include "scanner/walk/directory_identity.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr std::size_t decided_at_once = 1024;
constexpr std::size_t planned_at_once = 8;
constexpr std::size_t anchor_distance = 64;  // levels between directories that stay open
constexpr std::size_t planned_bytes_max =
    2048;  // of a path from an open directory: the system's limit is 4096

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
  read_ahead_.emplace(context_.environment.reader, context_.options.rules,
                      ReadAhead::Options{.mount = root.handle.mount,
                                         .threads = context_.readers(),
                                         .parts = context_.listing_parts(),
                                         .stop = context_.environment.stop,
                                         .taker_reads = !context_.has_other_drives()});
  mount_ = root.handle.mount;
  times_tell_ = context_.environment.reader.changes_times_with_entries(root.handle);
  path_.clear();
  const std::uint64_t inode = root.handle.inode;
  return push(DueDirectory("", inode, std::move(stored), root_, reason), std::move(root));
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
  if (auto planned = plan_ahead(); !planned) return planned;
  if (!may_wait && would_wait()) return {};
  if (!directory.due.empty()) return visit(directory);
  return directory.all_decided() ? finish() : base::Result<>();
}

// At least the next subdirectory of the directory that is open last; others some at once.
base::Result<> Walker::plan_ahead() {
  if (planning_.empty() || (!needs_next() && room(*planning_.back().directory) < planned_at_once)) return {};
  for (std::size_t count = 0; count < decided_at_once && !planning_.empty(); ++count) {
    OpenDirectory& level = *planning_.back().directory;
    if (level.all_decided()) {
      planning_.pop_back();
      continue;
    }
    if (!needs_next() && room(level) == 0) break;
    const std::size_t due_before = level.due.size();
    if (auto decided = level.decide_next(planning_.back().path); !decided) return decided;
    if (level.due.size() == due_before) continue;
    ++due_;
    std::string path = tracker::join_path(planning_.back().path, level.due.back().name);
    if (auto requested = request(level, level.due.back(), std::move(path)); !requested) return requested;
  }
  read_ahead_->submit(open_.size(), std::exchange(requested_, {}));
  // A long chain of directories needs no descriptor a level.
  OpenDirectory& directory = *open_.back();
  if (directory.all_decided() && open_.size() > 1) {
    directory.handle.reset();
    directory.closed.reset();
  }
  return {};
}

bool Walker::needs_next() const { return open_.back()->due.empty() && !open_.back()->all_decided(); }

// How many more may be waiting to be read. Where the pace is limited, few are read before their time.
std::size_t Walker::room(const OpenDirectory& level) const {
  const std::size_t max = context_.open_directories_max() / 2;
  if (context_.readers() == 0 || due_ >= max) return 0;
  const std::size_t room = std::min(level.room(due_), max - due_);
  return context_.pace.is_unlimited() || due_ < planned_at_once ? room : 0;
}

// Requests a subdirectory of the directory that is planned last, and plans what is below it.
base::Result<> Walker::request(OpenDirectory& parent, DueDirectory& child, std::string path) {
  const ReadAhead::AnyParent from = way_from(parent);
  child.planned = plan_below(from, child, path.size());
  if (child.planned) planning_.push_back({child.planned.get(), path});
  context_.pace.wait_until_due(context_.environment.stop);
  if (context_.is_stopped()) return interrupted_error();
  if (const auto early = early_.find(path); early != early_.end()) {
    child.ticket = std::move(early->second);
    child.is_early = true;
    early_.erase(early);
    return {};
  }
  child.ticket = ticket(from, child, std::move(path));
  requested_.push_back(child.ticket);
  return {};
}

// Whether the directory that was read by an earlier plan is this one.
bool Walker::is_it(const base::Result<DirectoryRead>& early, const DueDirectory& child) {
  if (!early || early->is_mount_point || early->handle.inode != child.inode) return false;
  return !early->is_known || (child.planned && early->handle.birth == child.stored->birth);
}

void Walker::drop_early_below_path() {
  if (early_.empty()) return;
  const std::string below = path_.empty() ? path_ : path_ + '/';
  auto at = early_.lower_bound(below);
  while (at != early_.end() && at->first.starts_with(below)) {
    read_ahead_->drop(*at->second);
    at = early_.erase(at);
  }
}

ReadAhead::Ticket Walker::ticket(const ReadAhead::AnyParent& from, const DueDirectory& child,
                                 std::string path) const {
  std::optional<StoredDirectory> stored;
  if (child.stored && !reads_all_below(child.reason)) {
    const DirectoryRow& row = *child.stored;
    stored.emplace();
    stored->facts.inode = row.inode;
    stored->facts.birth = row.birth;
    stored->facts.mtime_ns = row.own.mtime_ns;
    stored->facts.ctime_ns = row.ctime_ns;
    stored->times_tell = child.planned && times_tell(row) && !context_.is_audited(drive_, path);
  }
  return ReadAhead::ticket(from, std::move(path), stored);
}

// Whether the directory with this row has the stored entries if it has the stored times: nothing but
// subdirectories counts in it, and it was not changed shortly before it was read, or since the clock was set.
bool Walker::times_tell(const DirectoryRow& row) const {
  const std::int64_t settled_before_ns = context_.settled_before_ns;
  return times_tell_ && row.own.files == 0 && row.directories > 0 && row.entries != 0 && !row.is_racy &&
         row.ctime_ns != 0 && row.own.mtime_ns < settled_before_ns && row.ctime_ns < settled_before_ns;
}

// Below a directory that can be told from any other one there, and is there most likely.
std::unique_ptr<UnchangedDirectory> Walker::plan_below(const ReadAhead::AnyParent& from,
                                                       const DueDirectory& child, std::size_t path_bytes) {
  const bool may_be = child.stored && child.stored->directories > 0 && is_proof(child.stored->birth) &&
                      UnchangedDirectory::may_be_one(*child.stored, child.reason);
  if (!may_be) return nullptr;
  auto [above, below] = ReadAhead::way(from, child.name);
  if (below.size() > planned_bytes_max) return nullptr;
  auto planned = std::make_unique<UnchangedDirectory>(
      OpenDirectory::Start{*child.stored, child.stored, child.reason, child.at, path_bytes}, context_, plan_,
      rows_);
  const DirectoryFacts facts{.mount = mount_, .inode = child.stored->inode, .birth = child.stored->birth};
  planned->closed = std::make_shared<ClosedDirectory>(std::move(above), std::move(below), facts);
  return planned;
}

// A directory that is planned is closed; one that is open may have been closed meanwhile.
ReadAhead::AnyParent Walker::way_from(OpenDirectory& parent) const {
  if (parent.handle) return parent.handle;
  if (!parent.closed) parent.closed = closed_again(parent);
  return parent.closed;
}

std::shared_ptr<ClosedDirectory> Walker::closed_again(const OpenDirectory& directory) const {
  std::size_t at = open_.size() - 1;
  while (open_[at].get() != &directory) --at;
  while (!open_[at]->handle) --at;  // the root's is never closed
  const OpenDirectory& above = *open_[at];
  std::string_view below =
      std::string_view(path_).substr(above.path_bytes(), directory.path_bytes() - above.path_bytes());
  if (below.starts_with('/')) below.remove_prefix(1);
  const DirectoryFacts facts{.mount = mount_, .inode = directory.inode(), .birth = directory.row().birth};
  return std::make_shared<ClosedDirectory>(above.handle, std::string(below), facts);
}

// What was due below it is decided anew; what was read of it is kept until then.
void Walker::drop_plan(DueDirectory& child) {
  if (!child.planned) return;
  const auto at = std::ranges::find(planning_, child.planned.get(), &Planned::directory);
  planning_.erase(at, planning_.end());
  std::vector<std::unique_ptr<UnchangedDirectory>> dropped;
  dropped.push_back(std::move(child.planned));
  while (!dropped.empty()) {
    const std::unique_ptr<UnchangedDirectory> directory = std::move(dropped.back());
    dropped.pop_back();
    for (DueDirectory& due : directory->due) {
      --due_;
      if (due.ticket) early_.insert_or_assign(ReadAhead::path(*due.ticket), std::move(due.ticket));
      if (due.planned) dropped.push_back(std::move(due.planned));
    }
  }
}

base::Result<> Walker::visit(OpenDirectory& parent) {
  DueDirectory child = std::move(parent.due.front());
  parent.due.pop_front();
  --due_;
  if (!path_.empty()) path_ += '/';
  path_ += child.name;
  if (child.reason == Reason::other_directory) {
    if (auto erased = erase_stored(parent, child); !erased) return erased;
  }
  auto found = read(parent, child);
  if (context_.is_stopped()) return interrupted_error();
  if (found && !found->is_mount_point) return enter(parent, std::move(child), std::move(*found));
  drop_plan(child);
  drop_early_below_path();
  parent.last_done = child.name;
  if (found) return keep_mount_point(parent, std::move(child));
  const base::Error& error = found.error();
  if (error.code == Errc::interrupted) return error;
  if (is_gone(error.code)) return erase_stored(parent, child);
  return leave_unread(parent, std::move(child), error);
}

base::Result<DirectoryRead> Walker::read(OpenDirectory& parent, DueDirectory& child) {
  if (!child.ticket) {
    context_.pace.wait_until_due(context_.environment.stop);
    if (context_.is_stopped()) return interrupted_error();
    child.ticket = ticket(way_from(parent), child, path_);
  }
  auto found = read_ahead_->take(*child.ticket);
  if (child.is_early && !is_it(found, child)) {
    found = read_ahead_->take(*ticket(way_from(parent), child, path_));
  }
  return found;
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
  if (read.handle.inode != directory.inode) drop_plan(directory);
  const auto unchanged = is_unchanged(directory, read);
  if (!unchanged) return unchanged.error();
  if (*unchanged) return push_unchanged(std::move(directory), std::move(read));
  drop_plan(directory);
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
                             path_.size()},
        context_, plan_, rows_);
    planning_.push_back({unchanged.get(), path_});
  }
  DirectoryRow& row = unchanged->row();
  row.birth = read.handle.birth;
  if (read.is_known) {
    ++context_.figures.dirs_walked;
  } else {
    if (auto kept = rows_.take_files(path_, row, read.listing); !kept) return kept.error();
    if (auto applied = rows_.apply_listing(path_, row, read.listing, true); !applied) return applied;
  }
  open(std::move(unchanged), std::move(read.handle));
  return {};
}

base::Result<> Walker::push_changed(DueDirectory directory, DirectoryRead read) {
  DirectoryRow row =
      directory.stored ? *directory.stored : fresh_row(std::move(directory.name), directory.inode);
  row.inode = directory.inode;
  row.birth = read.handle.birth;
  auto new_files = rows_.take_files(path_, row, read.listing);
  if (!new_files) return new_files.error();
  if (auto applied = rows_.apply_listing(path_, row, read.listing, false); !applied) return applied;
  if (read.listing.incomplete) context_.add_error(real_path(), read.listing.incomplete->message);
  auto changed = std::make_unique<ChangedDirectory>(
      OpenDirectory::Start{std::move(row), std::move(directory.stored), directory.reason, directory.at,
                           path_.size()},
      std::move(read.listing.subdirectories), *std::move(new_files), context_, plan_, rows_);
  planning_.push_back({changed.get(), path_});
  open(std::move(changed), std::move(read.handle));
  return {};
}

void Walker::open(std::unique_ptr<OpenDirectory> directory, DirectoryHandle handle) {
  directory->set_open(std::move(handle));
  open_.push_back(std::move(directory));
  close_upper();
  report_progress();
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
  if (!planning_.empty() && planning_.back().directory == directory.get()) planning_.pop_back();
  drop_early_below_path();
  const auto is_other = directory->finish(path_);
  if (!is_other) return is_other.error();
  if (*is_other) context_.touched.add(path_);
  if (open_.empty()) {
    read_ahead_.reset();  // nothing on the drive stays open while others are walked
    return *is_other ? rows_.put_root(directory->row(), directory->before()) : base::Result<>();
  }
  open_.back()->last_done = directory->row().name;
  if (*is_other) return open_.back()->add(directory->take_row(), directory->before());
  open_.back()->add_unchanged(directory->row());
  return {};
}

// From the deepest one up, since each has the sums of those below it.
base::Result<> Walker::keep_so_far() {
  const OpenDirectory* below = nullptr;
  DirectoryRow row_below;
  for (std::size_t at = open_.size(); at > 0; --at) {
    OpenDirectory& directory = *open_[at - 1];
    auto row = directory.keep_so_far(below, row_below);
    if (!row) return row.error();
    auto put = at == 1 ? rows_.put_root(*row, directory.before()) : rows_.directories().put(*row);
    if (!put) return put;
    context_.touched.add(std::string_view(path_).substr(0, directory.path_bytes()));
    below = &directory;
    row_below = std::move(*row);
  }
  return {};
}

std::string Walker::place() const {
  const OpenDirectory& directory = *open_.back();
  return tracker::join_path(std::string_view(path_).substr(0, directory.path_bytes()), directory.last_done);
}

// Removes what is stored under the child's name: that directory is gone.
base::Result<> Walker::erase_stored(OpenDirectory& parent, DueDirectory& child) {
  if (!child.stored) return {};
  drop_plan(child);
  if (auto forgotten = parent.forget(*child.stored); !forgotten) return forgotten;
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
  return path_.empty() ? drive_path_.native() : (drive_path_ / path_).native();
}

}  // namespace spoor::scanner
