#include "scanner/walker.h"

#include <utility>

#include "scanner/errors.h"
#include "tracker/path.h"

namespace spoor::scanner {
namespace {

constexpr std::size_t written_max = 512;

ScanPlan::Known known_of(const DirectoryRow& row) {
  ScanPlan::Known known;
  known.inode = row.inode;
  known.all_below_dirty = row.state == DirectoryState::unread || row.state == DirectoryState::mount_point;
  known.left_below = row.pending + row.mount_points > 0;
  return known;
}

// Whether an entry that was listed is not there any more, or not as a directory.
bool is_gone(const std::error_code& code) {
  return code == std::errc::no_such_file_or_directory || code == std::errc::not_a_directory ||
         code == std::errc::too_many_symbolic_link_levels;
}

DirectoryRow fresh_row(const Subdirectory& entry) {
  DirectoryRow row;
  row.name = entry.name;
  row.inode = entry.inode;
  return row;
}

}  // namespace

bool is_another(const DirectoryRow& stored, const DirectoryHandle& found) {
  return stored.birth != 0 && found.birth != 0 && stored.birth != found.birth;
}

void ScanErrors::add(std::string path, std::string message) {
  ++count;
  if (kept.size() < kept_max) kept.push_back({std::move(path), std::move(message)});
}

Walker::Walker(WalkContext& context, const std::filesystem::path& drive, std::int64_t parent_of_root)
    : context_(context), drive_(drive), parent_of_root_(parent_of_root) {}

base::Result<> Walker::walk(DirectoryHandle root, Listing listing, std::optional<DirectoryRow> stored,
                            Reason reason) {
  device_ = root.device;
  path_.clear();
  DirectoryRow fresh;
  fresh.inode = root.inode;
  auto pushed =
      push(std::move(root), std::move(listing), std::move(stored), fresh, reason, context_.plan.root());
  if (!pushed) return pushed;
  while (!open_.empty()) {
    if (context_.stop.stop_requested()) return interrupted_error();
    if (auto stepped = step(); !stepped) return stepped;
  }
  return {};
}

base::Result<> Walker::step() {
  Frame& frame = open_.back();
  if (!frame.all_seen()) return visit(frame);
  if (auto erased = erase_rest(frame); !erased) return erased;
  return finish();
}

base::Result<> Walker::visit(Frame& parent) {
  const Subdirectory& entry = parent.listing.subdirectories[parent.next++];
  auto stored = take_stored(parent, entry.name);
  if (!stored) return stored.error();
  Child child{entry, std::move(*stored), parent.marks};
  child.marks.descend(entry.name);
  path_.resize(parent.path_bytes);
  if (!path_.empty()) path_ += '/';
  path_ += entry.name;

  std::optional<ScanPlan::Known> known;
  if (child.stored) known = known_of(*child.stored);
  child.reason = context_.plan.reason(child.marks, entry.inode, known, parent.reason);
  if (child.reason != Reason::clean) return enter(parent, std::move(child));
  context_.figures.dirs_skipped += 1 + child.stored->directories;
  parent.row.add_child(*child.stored);
  return {};
}

base::Result<> Walker::enter(Frame& parent, Child child) {
  if (child.reason == Reason::other_directory) {
    if (auto forgotten = forget(parent, child); !forgotten) return forgotten;
  }
  context_.pace.wait_turn(context_.stop);
  if (context_.stop.stop_requested()) return interrupted_error();
  auto handle = context_.reader.open(parent.handle, child.entry.name, path_);
  if (parent.all_seen()) parent.handle.close();  // a long chain of directories needs no descriptor a level
  if (!handle) {
    if (is_gone(handle.error().code)) return forget(parent, child);
    return leave_unread(parent, std::move(child), handle.error());
  }
  if (handle->device != device_) return keep_mount_point(parent, std::move(child));
  // The listing's inode number may have been given to another directory since the last scan.
  if (child.stored && is_another(*child.stored, *handle)) {
    child.reason = Reason::other_directory;
    if (auto forgotten = forget(parent, child); !forgotten) return forgotten;
  }
  return read(parent, std::move(child), std::move(*handle));
}

base::Result<> Walker::read(Frame& parent, Child child, DirectoryHandle handle) {
  auto listing = context_.reader.read(handle, path_, context_.rules, context_.stop);
  if (listing) {
    return push(std::move(handle), std::move(*listing), std::move(child.stored), fresh_row(child.entry),
                child.reason, child.marks);
  }
  const base::Error& error = listing.error();
  if (error.code == Errc::interrupted) return error;
  if (is_gone(error.code)) return forget(parent, child);  // removed between opening and listing
  return leave_unread(parent, std::move(child), error);
}

base::Result<> Walker::push(DirectoryHandle handle, Listing listing, std::optional<DirectoryRow> stored,
                            const DirectoryRow& fresh, Reason reason, const tracker::MarkCursor& marks) {
  DirectoryRow row = fresh;
  if (stored) row = std::move(*stored);
  row.inode = fresh.inode;
  row.birth = handle.birth;
  take_listing(row, listing, row.read_scan == 0);
  StoredChildren children(context_.store, row.id);
  Frame& frame = open_.emplace_back(std::move(handle), std::move(listing), std::move(row), reason, marks,
                                    std::move(children));
  frame.path_bytes = path_.size();
  if (frame.all_seen()) frame.handle.close();
  tell_progress();
  return {};
}

// What could not be summed up keeps its own totals and its signature: a change shows once it can be.
void Walker::take_listing(DirectoryRow& row, const Listing& listing, bool is_new) {
  ++context_.figures.dirs_walked;
  if (is_new) {
    ++context_.figures.dirs_new;
  } else if (!listing.incomplete && row.signature != listing.signature) {
    ++context_.figures.dirs_changed;
  }
  row.read_scan = context_.scan_id;
  if (listing.incomplete) context_.errors.add(real_path(), listing.incomplete->message);
  row.set_state(listing.incomplete ? DirectoryState::incomplete : DirectoryState::ok);
  if (!listing.incomplete || is_new) row.signature = listing.signature;
  row.restart_sums(listing.incomplete && !is_new ? row.own : listing.own);
}

base::Result<> Walker::finish() {
  Frame frame = std::move(open_.back());
  open_.pop_back();
  if (frame.row.id == 0) frame.row.id = context_.store.new_id();
  if (auto put = put_written(frame); !put) return put;
  if (open_.empty()) return context_.store.put(parent_of_root_, frame.row);
  return add(open_.back(), std::move(frame.row));
}

base::Result<std::optional<DirectoryRow>> Walker::take_stored(Frame& parent, const std::string& name) {
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
  const auto erased = context_.store.erase(parent.row.id, row, context_.stop);
  if (!erased) return erased.error();
  context_.figures.dirs_deleted += *erased;
  return {};
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
  DirectoryRow row = child.stored ? std::move(*child.stored) : fresh_row(child.entry);
  row.set_state(DirectoryState::unread);
  return add(parent, std::move(row));
}

// Counts as an empty directory. What was known of it is of before the mount, or of what the mount
// hides; its inode is that of the directory beneath, whose birth can't be seen.
base::Result<> Walker::keep_mount_point(Frame& parent, Child child) {
  DirectoryRow row = fresh_row(child.entry);
  if (child.stored) {
    row.id = child.stored->id;
    const auto erased = context_.store.erase_below(*child.stored, context_.stop);
    if (!erased) return erased.error();
    context_.figures.dirs_deleted += *erased;
  }
  row.set_state(DirectoryState::mount_point);
  return add(parent, std::move(row));
}

base::Result<> Walker::add(Frame& parent, DirectoryRow row) {
  parent.row.add_child(row);
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
  context_.progress({context_.figures, real_path()});
}

std::string Walker::real_path() const { return path_.empty() ? drive_.native() : (drive_ / path_).native(); }

}  // namespace spoor::scanner
