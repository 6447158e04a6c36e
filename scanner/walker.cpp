#include "scanner/walker.h"

#include <algorithm>
#include <utility>

#include "scanner/directory_identity.h"
#include "scanner/errors.h"
#include "tracker/path.h"

namespace spoor::scanner {
namespace {

constexpr std::size_t written_max = 512;
constexpr std::size_t due_in_one_max = 32;  // subdirectories of one directory
constexpr std::size_t decided_at_once = 1024;
constexpr std::size_t anchor_distance = 64;  // levels between directories that stay open
constexpr std::size_t new_files_bytes_max = 16U << 20U;

ScanPlan::Known known_of(const DirectoryRow& row) {
  ScanPlan::Known known;
  known.inode = row.inode;
  known.all_below_dirty = row.state == DirectoryState::unread || row.state == DirectoryState::mount_point;
  known.left_below = row.pending + row.mount_points > 0;
  return known;
}

DirectoryRow fresh_row(std::string name, std::uint64_t inode) {
  DirectoryRow row;
  row.name = std::move(name);
  row.inode = inode;
  return row;
}

// Whether its subdirectories are those that are stored, so that none has to be looked up but for its marks.
bool has_same_entries(const DirectoryRow& stored, const Listing& listing, Reason reason) {
  return stored.read_scan != 0 && stored.state == DirectoryState::ok &&
         stored.pending + stored.mount_points == 0 && !listing.incomplete && !stored.is_racy &&
         !stored.subtree.is_saturated() && stored.signature == listing.signature && !reads_all_below(reason);
}

base::Error way_lost_error() {
  return {std::make_error_code(std::errc::no_such_file_or_directory),
          "a directory above it was moved or replaced while it was walked"};
}

}  // namespace

bool is_another(const DirectoryRow& stored, const DirectoryHandle& found) {
  return is_proof(stored.birth) && is_proof(found.birth) && stored.birth != found.birth;
}

bool may_be_another(const DirectoryRow& stored, const DirectoryHandle& found) {
  return stored.read_scan != 0 && (found.birth == no_identity || stored.birth != found.birth);
}

void ScanErrors::add(std::string path, std::string message) {
  ++count;
  if (kept.size() < kept_max) kept.push_back({std::move(path), std::move(message)});
}

Walker::Walker(WalkContext& context, const std::filesystem::path& drive, std::int64_t parent_of_root,
               WalkLog* log)
    : context_(context), drive_(drive), parent_of_root_(parent_of_root), log_(log) {}

base::Result<> Walker::begin(DirectoryHandle root, Listing listing, std::optional<DirectoryRow> stored,
                             Reason reason) {
  read_ahead_.emplace(context_.reader, context_.rules,
                      ReadAhead::Options{.device = root.device,
                                         .threads = context_.readers,
                                         .file_names = context_.file_names(),
                                         .stop = context_.stop,
                                         .open_max = context_.open_directories_max / 4,
                                         .taker_reads = !context_.has_other_drives});
  path_.clear();
  DirectoryRow fresh;
  fresh.inode = root.inode;
  DirectoryRead read;
  read.handle = std::move(root);
  read.listing = std::move(listing);
  return push(std::move(read), std::move(stored), fresh, reason, context_.plan.root());
}

bool Walker::would_wait() const {
  if (open_.empty() || open_.back().due.empty()) return false;
  const Child& next = open_.back().due.front();
  return next.ticket && !read_ahead_->is_ready(*next.ticket);
}

base::Result<> Walker::step(bool may_wait) {
  if (context_.stop.stop_requested()) return interrupted_error();
  Frame& frame = open_.back();
  path_.resize(frame.path_bytes);
  if (auto decided = decide_ahead(frame); !decided) return decided;
  if (auto asked = ask_for_due(frame); !asked) return asked;
  if (!may_wait && would_wait()) return {};
  if (!frame.due.empty()) return visit(frame);
  if (!frame.all_decided()) return {};
  if (!frame.has_same_entries) {
    if (auto erased = erase_rest(frame); !erased) return erased;
  }
  return finish();
}

// How many subdirectories of one directory may be waiting to be read.
std::size_t Walker::due_max() const {
  const std::size_t max = context_.open_directories_max / 2;
  if (context_.readers == 0 || due_ >= max) return 1;
  return std::min(due_in_one_max, max - due_);
}

base::Result<> Walker::decide_ahead(Frame& frame) {
  const std::size_t max = due_max();
  if (frame.due.size() > max - max / 4) return {};
  for (std::size_t count = 0; count < decided_at_once; ++count) {
    if (frame.all_decided() || frame.due.size() >= max) break;
    if (auto decided = decide_next(frame); !decided) return decided;
  }
  return {};
}

void Walker::Frame::skip_to_marked() {
  decided = marked_decided < marked->size() ? (*marked)[marked_decided].number : subdirectories.size();
}

std::optional<MarkedSubdirectory> Walker::Frame::take_marked(std::size_t number) {
  if (!marked || marked_decided == marked->size() || (*marked)[marked_decided].number != number) {
    return std::nullopt;
  }
  return std::move((*marked)[marked_decided++]);
}

base::Result<> Walker::decide_next(Frame& frame) {
  if (frame.has_same_entries && frame.marked) {
    frame.skip_to_marked();
    if (frame.all_decided()) return {};
  }
  const Subdirectory entry = frame.subdirectories[frame.decided];
  const auto read_ahead = frame.take_marked(frame.decided++);
  tracker::MarkCursor marks = frame.marks;
  marks.descend(entry.name);
  if (frame.has_same_entries && !marks.may_be_dirty()) return {};
  auto stored =
      frame.has_same_entries ? context_.store.find(frame.row.id, entry.name) : take_stored(frame, entry.name);
  if (!stored) return stored.error();

  std::optional<ScanPlan::Known> known;
  if (*stored) known = known_of(**stored);
  const Reason reason = context_.plan.reason(marks, entry.inode, known, frame.reason);
  if (reason == Reason::clean) {
    if (frame.has_same_entries) return {};
    context_.figures.dirs_skipped += 1 + (*stored)->directories;
    frame.row.add_child(**stored);
    return {};
  }
  if (frame.has_same_entries && *stored) take_out(frame, **stored);
  Child& child =
      frame.due.emplace_back(std::string(entry.name), entry.inode, std::move(*stored), marks, reason);
  if (read_ahead) child.ticket = read_ahead->ticket;
  ++due_;
  return {};
}

void Walker::take_out(Frame& frame, const DirectoryRow& stored) {
  frame.row.remove_child(stored);
  frame.skipped -= 1 + stored.directories;
  if (stored.subtree.mtime_ns >= frame.row.subtree.mtime_ns) frame.has_lost_newest = true;
}

// As long as a log knows what comes next, nobody reads ahead.
base::Result<> Walker::ask_for_due(Frame& frame) {
  if (is_replaying()) return {};
  std::vector<ReadAhead::Ticket> tickets;
  for (; frame.asked < frame.due.size(); ++frame.asked) {
    if (frame.due[frame.asked].ticket) continue;
    context_.pace.wait_turn(context_.stop);
    if (context_.stop.stop_requested()) return interrupted_error();
    ask_for(frame.due[frame.asked]);
    if (frame.due[frame.asked].ticket) tickets.push_back(frame.due[frame.asked].ticket);
  }
  read_ahead_->submit(open_.size(), std::move(tickets));
  // A long chain of directories needs no descriptor a level.
  if (frame.all_decided() && open_.size() > 1) frame.handle.reset();
  return {};
}

// Of the directory that is open last.
void Walker::ask_for(Child& child) {
  Frame& parent = open_.back();
  if (!parent.handle) {
    auto handle = reopen();
    if (!handle) {
      child.unreachable = handle.error();
      return;
    }
    parent.handle = std::move(*handle);
  }
  const std::string_view parent_path = std::string_view(path_).substr(0, parent.path_bytes);
  // Marks lead to what is read in any case; at a limited pace nobody runs ahead.
  std::optional<tracker::MarkCursor> marks;
  const bool may_follow = !is_replaying() && context_.pace.is_unlimited();
  if (may_follow && !reads_all_below(child.reason)) marks = child.marks;
  child.ticket = ReadAhead::ticket(parent.handle, tracker::join_path(parent_path, child.name), marks);
}

// The directory that is open last was closed meanwhile, or was never opened by this walk. Where the way to it
// is not what it was, that says nothing of what is in it: it may be moved back without a mark of its own.
base::Result<ReadAhead::Parent> Walker::reopen() {
  const Frame& frame = open_.back();
  std::size_t at = open_.size() - 1;
  while (!open_[at].handle) --at;  // the root's is never closed
  std::string_view below =
      std::string_view(path_).substr(open_[at].path_bytes, frame.path_bytes - open_[at].path_bytes);
  if (below.starts_with('/')) below.remove_prefix(1);
  auto opened = context_.reader.open_below(*open_[at].handle, below);
  if (!opened) return is_gone(opened.error().code) ? way_lost_error() : opened.error();
  const bool is_same = opened->device == open_[at].handle->device && opened->inode == frame.inode;
  if (!is_same || is_another(frame.row, *opened)) return way_lost_error();
  return ReadAhead::Parent(std::make_shared<const DirectoryHandle>(std::move(*opened)));
}

base::Result<> Walker::visit(Frame& parent) {
  Child child = std::move(parent.due.front());
  parent.due.pop_front();
  --due_;
  const bool was_asked_for = parent.asked > 0;
  if (was_asked_for) --parent.asked;
  if (!path_.empty()) path_ += '/';
  path_ += child.name;
  if (child.reason == Reason::other_directory) {
    if (auto forgotten = forget(parent, child); !forgotten) return forgotten;
  }
  auto found = read(child);
  if (context_.stop.stop_requested()) return interrupted_error();
  if (found) return take(parent, std::move(child), std::move(*found));
  const base::Error& error = found.error();
  if (error.code == Errc::interrupted) return error;
  if (is_gone(error.code) && !child.unreachable) return forget(parent, child);
  return leave_unread(parent, std::move(child), error);
}

base::Result<DirectoryRead> Walker::read(Child& child) {
  if (is_replaying()) {
    if (auto logged = log_->take(path_)) {
      ++context_.dirs_replayed;
      return std::move(*logged);
    }
  }
  if (!child.ticket && !child.unreachable) {
    context_.pace.wait_turn(context_.stop);
    if (context_.stop.stop_requested()) return interrupted_error();
    ask_for(child);
  }
  if (child.unreachable) return *child.unreachable;
  auto found = read_ahead_->take(*child.ticket);
  const bool is_to_be_logged = found && !found->is_mount_point && !found->listing.incomplete;
  if (log_ != nullptr && is_to_be_logged) log_->add(path_, *found);
  return found;
}

base::Result<> Walker::take(Frame& parent, Child child, DirectoryRead read) {
  if (read.is_mount_point) return keep_mount_point(parent, std::move(child));
  // The listing's inode number may have been given to another directory since the last scan.
  if (child.stored && is_another(*child.stored, read.handle)) {
    child.reason = Reason::other_directory;
    if (auto forgotten = forget(parent, child); !forgotten) return forgotten;
  } else if (child.stored && !reads_all_below(child.reason) && may_be_another(*child.stored, read.handle)) {
    child.reason = Reason::not_known_below;
  }
  return push(std::move(read), std::move(child.stored), fresh_row(std::move(child.name), child.inode),
              child.reason, child.marks);
}

base::Result<> Walker::push(DirectoryRead read, std::optional<DirectoryRow> stored, const DirectoryRow& fresh,
                            Reason reason, const tracker::MarkCursor& marks) {
  DirectoryRow row = stored.value_or(fresh);
  row.inode = fresh.inode;
  row.birth = read.handle.birth;
  auto new_files = take_files(row, read.listing);
  if (!new_files) return new_files.error();
  const bool is_same = stored && has_same_entries(*stored, read.listing, reason);
  if (is_same) {
    ++context_.figures.dirs_walked;
    row.entries = read.listing.entries;
    row.is_racy = read.listing.is_racy;
    // The sizes are those of before, but found later than what other directories have of the same files.
    if (!read.listing.linked.empty()) {
      auto kept = context_.links.replace(-parent_of_root_, path_, read.listing.linked, false);
      if (!kept) return kept;
    }
  } else if (auto taken = take_listing(row, read.listing, row.read_scan == 0); !taken) {
    return taken;
  }
  const bool has_stored_children = stored && stored->directories > 0;
  StoredChildren children(context_.store, has_stored_children ? row.id : 0);
  Frame& frame = open_.emplace_back(std::move(read), std::move(row), reason, marks, std::move(children));
  frame.before = std::move(stored);
  frame.has_same_entries = is_same;
  if (is_same) frame.skipped = frame.row.directories;
  frame.new_files = std::move(*new_files);
  frame.path_bytes = path_.size();
  // Of a deep tree, the lower levels and a few of the upper ones are open.
  const std::size_t kept = std::max<std::size_t>(context_.open_directories_max / 4, 1);
  if (open_.size() > kept) {
    const std::size_t at = open_.size() - 1 - kept;
    if (at % anchor_distance != 0) open_[at].handle.reset();
  }
  tell_progress();
  return {};
}

// Gives those back of a new directory. It gets its id with its last child, so that rows are appended in key
// order; but not where too many would wait for that. `row` is as it was before.
base::Result<std::optional<Files>> Walker::take_files(DirectoryRow& row, Listing& listing) {
  std::optional<Files> files = std::exchange(listing.files, std::nullopt);
  if (context_.files == nullptr || !files) return std::optional<Files>();
  if (row.read_scan == 0) {
    const std::size_t bytes = files->memory_bytes();
    if (row.id == 0 && new_files_bytes_ + bytes <= new_files_bytes_max) {
      new_files_bytes_ += bytes;
      return files;
    }
    if (row.id == 0) row.id = context_.store.new_id();
    if (auto added = context_.files->add(row.id, *files); !added) return added.error();
    return std::optional<Files>();
  }
  if (listing.incomplete) return std::optional<Files>();
  const auto is_told = context_.files->update(row, *files, row.is_racy || row.signature != listing.signature);
  if (!is_told) return is_told.error();
  if (!*is_told) {
    // As if all of it had been replaced: whoever follows drops it, and takes it anew.
    auto noted = path_.empty() ? context_.changes.reset() : note(path_, Change::deleted);
    if (!noted) return noted.error();
  }
  return std::optional<Files>();
}

base::Result<> Walker::keep_new_files(Frame& frame) {
  if (!frame.new_files) return {};
  new_files_bytes_ -= frame.new_files->memory_bytes();
  return context_.files->add(frame.row.id, *frame.new_files);
}

// What could not be summed up keeps its own totals and its signature: a change shows once it can be.
base::Result<> Walker::take_listing(DirectoryRow& row, const Listing& listing, bool is_new) {
  ++context_.figures.dirs_walked;
  if (is_new) {
    ++context_.figures.dirs_new;
    if (auto noted = note(path_, Change::created); !noted) return noted;
  } else if (!listing.incomplete && (row.is_racy || row.signature != listing.signature)) {
    ++context_.figures.dirs_changed;
    if (auto noted = note(path_, Change::changed); !noted) return noted;
  }
  row.read_scan = context_.scan_id;
  if (listing.incomplete) context_.errors.add(real_path(), listing.incomplete->message);
  row.set_state(listing.incomplete ? DirectoryState::incomplete : DirectoryState::ok);
  if (!listing.incomplete || is_new) {
    row.signature = listing.signature;
    row.entries = listing.entries;
    row.is_racy = listing.is_racy;
  }
  const bool keeps_own = listing.incomplete && !is_new;
  row.restart_sums(keeps_own ? row.own : listing.own);
  if (keeps_own) return {};
  return context_.links.replace(-parent_of_root_, path_, listing.linked, is_new);
}

base::Result<> Walker::note(std::string_view path, Change change) {
  return context_.changes.add(-parent_of_root_, path, change);
}

base::Result<> Walker::finish() {
  Frame frame = std::move(open_.back());
  open_.pop_back();
  if (frame.row.id == 0) frame.row.id = context_.store.new_id();
  if (auto put = put_written(frame); !put) return put;
  frame.row.add_sums(frame.found);
  if (frame.has_same_entries) {
    if (auto finished = finish_same_entries(frame); !finished) return finished;
  }
  if (auto kept = keep_new_files(frame); !kept) return kept;
  if (frame.before) {
    const std::uint64_t read_scan = std::exchange(frame.row.read_scan, frame.before->read_scan);
    if (frame.row == *frame.before) {
      if (!open_.empty()) open_.back().found.add_child(frame.row);
      return {};
    }
    frame.row.read_scan = read_scan;
  }
  if (open_.empty()) return context_.store.put(parent_of_root_, frame.row);
  return add(open_.back(), std::move(frame.row));
}

// Those that were not due were skipped, and count as before.
base::Result<> Walker::finish_same_entries(Frame& frame) {
  context_.figures.dirs_skipped += frame.skipped;
  frame.row.read_scan = context_.scan_id;
  const std::int64_t newest = std::max(frame.found.subtree.mtime_ns, frame.row.own.mtime_ns);
  if (!frame.has_lost_newest || newest >= frame.row.subtree.mtime_ns) return {};
  const auto below = context_.store.newest_below(frame.row);
  if (!below) return below.error();
  frame.row.subtree.mtime_ns = std::max(*below, frame.row.own.mtime_ns);
  return {};
}

base::Result<std::optional<DirectoryRow>> Walker::take_stored(Frame& parent, std::string_view name) {
  for (;;) {
    auto row = parent.stored.peek();
    if (!row) return row.error();
    if (*row == nullptr || (*row)->name > name) return std::optional<DirectoryRow>();
    std::optional<DirectoryRow> taken(std::move(**row));
    parent.stored.pop();
    if (taken->name == name) return taken;
    if (auto erased = erase(parent, *taken); !erased) return erased.error();
  }
}

base::Result<> Walker::erase_rest(Frame& parent) {
  for (;;) {
    auto row = parent.stored.peek();
    if (!row) return row.error();
    if (*row == nullptr) return {};
    if (auto erased = erase(parent, **row); !erased) return erased;
    parent.stored.pop();
  }
}

base::Result<> Walker::erase(Frame& parent, const DirectoryRow& row) {
  const std::string path = tracker::join_path(std::string_view(path_).substr(0, parent.path_bytes), row.name);
  if (auto noted = note(path, Change::deleted); !noted) return noted;
  const auto erased = context_.store.erase(parent.row.id, row, context_.stop);
  if (!erased) return erased.error();
  context_.figures.dirs_deleted += *erased;
  return context_.links.erase_below(-parent_of_root_, path, context_.stop);
}

// What was stored under the child's name is not there any more.
base::Result<> Walker::forget(Frame& parent, Child& child) {
  if (!child.stored) return {};
  auto erased = erase(parent, *child.stored);
  child.stored.reset();
  return erased;
}

base::Result<> Walker::leave_unread(Frame& parent, Child child, const base::Error& error) {
  context_.errors.add(real_path(), error.message);
  DirectoryRow row = child.stored ? std::move(*child.stored) : fresh_row(std::move(child.name), child.inode);
  row.set_state(DirectoryState::unread);
  return add(parent, std::move(row));
}

// Counts as an empty directory. What was known of it is of before the mount, or of what the mount
// hides; its inode is that of the directory beneath, whose birth can't be seen. It loses its id: what comes
// to be read there is new, and the changes of files that are noted by the old one are not those of it.
base::Result<> Walker::keep_mount_point(Frame& parent, Child child) {
  DirectoryRow row = fresh_row(std::move(child.name), child.inode);
  if (child.stored) {
    const auto erased = context_.store.erase_below(*child.stored, context_.stop);
    if (!erased) return erased.error();
    context_.figures.dirs_deleted += *erased;
    auto links_erased = context_.links.erase_below(-parent_of_root_, path_, context_.stop);
    if (!links_erased) return links_erased;
    if (context_.files != nullptr) {
      const auto files_erased = context_.files->erase(child.stored->id);
      if (!files_erased) return files_erased;
    }
    if (child.stored->state != DirectoryState::mount_point) {
      for (const Change change : {Change::deleted, Change::created}) {
        if (auto noted = note(path_, change); !noted) return noted;
      }
    }
  }
  row.set_state(DirectoryState::mount_point);
  return add(parent, std::move(row));
}

base::Result<> Walker::add(Frame& parent, DirectoryRow row) {
  parent.found.add_child(row);
  parent.written.push_back(std::move(row));
  return parent.written.size() < written_max ? base::Result<>() : put_written(parent);
}

base::Result<> Walker::put_written(Frame& frame) {
  if (frame.row.id == 0) frame.row.id = context_.store.new_id();
  for (const DirectoryRow& row : frame.written) {
    if (auto put = context_.store.put(frame.row.id, row); !put) return put;
  }
  frame.written.clear();
  return {};
}

void Walker::tell_progress() {
  if (!context_.progress || context_.figures.dirs_walked % context_.progress_every != 0) return;
  std::uint64_t done = context_.figures.dirs_walked + context_.figures.dirs_skipped;
  for (const Frame& frame : open_) {
    if (frame.decided > 0) done += frame.skipped * frame.decided / frame.subdirectories.size();
  }
  context_.progress({context_.figures, done, context_.dirs_known, real_path()});
}

std::string Walker::real_path() const { return path_.empty() ? drive_.native() : (drive_ / path_).native(); }

}  // namespace spoor::scanner
