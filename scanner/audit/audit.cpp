#include "scanner/audit/audit.h"

#include <algorithm>
#include <utility>

#include "scanner/errors.h"
#include "scanner/walk/directory_identity.h"
#include "tracker/filter/hash.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

// Of a deep tree, the lower levels and a few of the upper ones stay open, so that each directory costs about
// one open, however deep it lies.
constexpr std::size_t open_levels = 16;
constexpr std::size_t anchor_distance = 64;

std::string_view parent_bytes(std::string_view path, const DirectoryRow& row) {
  return path.size() == row.name.size() ? "" : path.substr(0, path.size() - row.name.size() - 1);
}

}  // namespace

base::Result<Audit::Outcome> Audit::run(const KnownDrive& drive, const std::optional<std::string>& after,
                                        std::uint64_t count) {
  outcome_ = {};
  missed_bytes_ = 0;
  differing_bytes_ = 0;
  is_long_ = false;
  drive_ = drive.id;
  identity_ = drive.drive.identity;
  open_.clear();
  auto top = context_.environment.reader.open_drive(drive.drive.path);
  const std::int64_t parent_of_root = DirectoryStore::parent_of_root(drive.id);
  const auto root = context_.transaction.directories().find(parent_of_root, "");
  if (!root) return root.error();
  const bool is_known = *root && (*root)->state != DirectoryState::unread;
  if (is_known && !top) {
    walk_again("");  // the walk opens it as well, and reports the error
    return std::move(outcome_);
  }
  if (!is_known || top->inode != (*root)->inode || is_another(**root, *top)) {
    outcome_.is_left_to_walk = true;
    return std::move(outcome_);
  }
  enter(**root, "").handle = std::move(*top);
  StoredTree tree(context_.transaction.directories(), parent_of_root);
  if (after) {
    if (auto entered = enter_ancestors(**root, *after); !entered) return entered.error();
    if (auto sought = tree.seek_behind(*after); !sought) return sought.error();
  }
  if (auto visited = visit_rows(tree, count); !visited) return visited.error();
  open_.clear();
  return std::move(outcome_);
}

// The directory that the audit continues behind may be gone, and so may those above it.
base::Result<> Audit::enter_ancestors(DirectoryRow row, std::string_view after) {
  for (tracker::ComponentCursor at(after); at.next();) {
    auto below = context_.transaction.directories().find(row.id, at.component());
    if (!below) return below.error();
    if (!*below) break;
    row = std::move(**below);
    enter(row, at.prefix());
  }
  return {};
}

base::Result<> Audit::visit_rows(StoredTree& tree, std::uint64_t count) {
  while (outcome_.visited < count && differing_bytes_ < differing_bytes_max) {
    if (context_.is_stopped()) return interrupted_error();
    const auto has_time = this->has_time();
    if (!has_time) return has_time.error();
    if (!*has_time) break;
    const auto row = tree.next();
    if (!row) return row.error();
    if (!*row) {
      outcome_.is_at_end = true;
      break;
    }
    ++outcome_.visited;
    outcome_.last_path = tree.path();
    const Level& level = enter(**row, tree.path());
    if (!level.is_left && !level.is_walked && (*row)->state == DirectoryState::ok) {
      if (auto visited = visit(**row, tree.path()); !visited) return visited;
    }
    if (!open_.back().is_left) continue;
    tree.skip_below(**row);
    outcome_.visited += (*row)->directories;
  }
  return {};
}

// Of a long audit, the input of the scan is committed.
base::Result<bool> Audit::has_time() {
  const base::SteadyTime now = context_.environment.clock.steady_now();
  if (!is_long_ && now >= keep_from_ && now < until_) {
    is_long_ = true;
    if (auto committed = context_.commit_so_far(); !committed) return committed.error();
  }
  return now < until_;
}

// Goes to a directory whose parent was entered, not necessarily last. No walk reaches a filter's false
// positive below a directory that is in no filter.
Audit::Level& Audit::enter(const DirectoryRow& row, std::string_view path) {
  if (path.empty()) {
    if (!open_.empty()) return open_.front();
    Level& root = open_.emplace_back(
        row, 0, tracker::DriveCursor(tracker::MarkCursor(context_.input.marks), identity_));
    root.is_walked = root.marks.may_be_dirty();
    root.is_left = root.marks.covered();
    return root;
  }
  const std::size_t above = parent_bytes(path, row).size();
  while (open_.size() > 1 && open_.back().path_bytes > above) open_.pop_back();
  Level& parent = open_.back();
  tracker::DriveCursor marks = parent.marks;
  marks.descend(row.name);
  Level level(row, path.size(), marks);
  level.is_walked = parent.is_walked && marks.may_be_dirty();
  const bool is_read_below = row.state == DirectoryState::unread || row.state == DirectoryState::mount_point;
  level.is_left = parent.is_left || marks.covered() || is_read_below;
  level.is_uncertain = parent.is_uncertain;
  return open_.emplace_back(std::move(level));
}

base::Result<> Audit::visit(const DirectoryRow& row, const std::string& path) {
  context_.pace.wait_until_due(context_.environment.stop);
  if (!open(path)) return {};
  Level& level = open_.back();
  const auto listing = context_.environment.reader.read(*level.handle, path, context_.options.rules,
                                                        ListingParts(), context_.environment.stop);
  if (context_.is_stopped()) return interrupted_error();
  ++outcome_.audited;
  if (!listing || listing->incomplete) {
    differs_without_count(open_.size() - 1, path);
    if (!listing) leave(open_.size() - 1);
  } else if (listing->signature != row.signature) {
    const auto linked = may_be_a_link(row, *listing, path);
    if (!linked) return linked.error();
    // Names that the rules ignore change a directory's own times, and no mark can cover that.
    if (*linked || level.is_uncertain || row.entries == listing->entries) {
      differs_without_count(open_.size() - 1, path);
    } else {
      differs(level, path, listing->ctime_ns);
    }
  }
  return {};
}

// A name that comes or goes elsewhere changes the ctime of the file under all its names, and is marked there.
base::Result<bool> Audit::may_be_a_link(const DirectoryRow& row, const Listing& listing,
                                        std::string_view path) {
  if (listing.own != row.own) return false;
  return context_.transaction.links().holds_any(drive_, path);
}

// Opens the directory that was entered last, and those above it as needed. If one of them can't be opened,
// all below that one is left to the walk.
bool Audit::open(const std::string& path) {
  std::size_t number = open_.size() - 1;
  while (!open_[number].handle) --number;  // the root's is never closed
  while (++number < open_.size()) {
    if (!open_level(number, path)) {
      leave(number);
      return false;
    }
    if (number > open_levels && (number - open_levels) % anchor_distance != 0) {
      open_[number - open_levels].handle.reset();
    }
  }
  return true;
}

bool Audit::open_level(std::size_t number, const std::string& path) {
  const Level& parent = open_[number - 1];
  Level& level = open_[number];
  const std::string_view its_path = std::string_view(path).substr(0, level.path_bytes);
  const std::string name(its_path.substr(parent.path_bytes == 0 ? 0 : parent.path_bytes + 1));
  auto handle = context_.environment.reader.open(*parent.handle, name, its_path);
  if (handle) {
    if (!is_the_stored_one(number, *handle, path)) return false;
    level.handle = std::move(*handle);
    return true;
  }
  if (is_gone(handle.error().code)) {
    gone(number, path);
  } else {
    differs_without_count(number, path);
  }
  return false;
}

// An inode number alone proves nothing: the stored one is from the listing, which on some file systems is
// never the directory's own.
bool Audit::is_the_stored_one(std::size_t number, const DirectoryHandle& handle, const std::string& path) {
  const Level& parent = open_[number - 1];
  Level& level = open_[number];
  if (handle.mount != open_.front().handle->mount) {
    differs_without_count(number, path);  // mounting leaves no trace in the directory above
    return false;
  }
  const bool has_proofs = is_proof(level.birth) && is_proof(handle.birth);
  if (has_proofs && level.birth != handle.birth) {
    gone(number, path);
    return false;
  }
  if (!has_proofs && level.inode != handle.inode && parent.is_walked) level.is_uncertain = true;
  level.is_uncertain = level.is_uncertain || parent.is_uncertain;
  return true;
}

void Audit::leave(std::size_t number) {
  for (; number < open_.size(); ++number) open_[number].is_left = true;
}

void Audit::differs_without_count(std::size_t number, const std::string& path) {
  if (!open_[number].is_walked) walk_again(path.substr(0, open_[number].path_bytes));
}

// The directory is gone, or another one has its name. That is one change, of the directory above; a mark of
// the name leads the walk there. A walk that reads the one above for another reason does not notice the
// change if the inode number is the same.
void Audit::gone(std::size_t number, const std::string& path) {
  Level& parent = open_[number - 1];
  differs_without_count(number, path);
  if (parent.is_walked || parent.is_counted || parent.is_uncertain) return;
  differs(parent, path.substr(0, parent.path_bytes), parent.handle->ctime_ns);
}

void Audit::differs(Level& level, const std::string& path, std::int64_t changed_ns) {
  walk_again(path);
  level.is_counted = true;
  if (context_.input.partial || may_be_on_the_way(changed_ns)) return;
  ++outcome_.missed;
  const std::size_t bytes = sizeof(std::string) + path.size();
  if (missed_bytes_ + bytes > missed_bytes_max || outcome_.missed_paths.size() >= missed_kept_max) return;
  missed_bytes_ += bytes;
  outcome_.missed_paths.push_back(path);
}

// A path that is too long for a mark is walked with all that is below the deepest one that is not.
void Audit::walk_again(const std::string& path) {
  DifferingPaths& differing = outcome_.differing;
  const bool is_too_long = path.size() > tracker::path_bytes_max;
  auto& paths = is_too_long ? differing.trees : differing.directories;
  const std::size_t end = is_too_long ? path.rfind('/', tracker::path_bytes_max) : path.size();
  const auto [entry, is_new] = paths.insert(path.substr(0, end));
  if (is_new) differing_bytes_ += sizeof(std::string) + entry->size();
}

// A time ahead of the clock was given before the clock was set back.
bool Audit::may_be_on_the_way(std::int64_t changed_ns) const {
  const base::WallTime now = context_.environment.clock.wall_now();
  const base::WallTime from = std::min(context_.input.started_at, now) - grace;
  const base::WallTime to = std::max(context_.input.started_at, now) + grace;
  return changed_ns >= from.time_since_epoch().count() && changed_ns <= to.time_since_epoch().count();
}

tracker::MarkSet DifferingPaths::marks() const {
  constexpr double fp_rate = 1e-6;
  std::uint64_t items = 0;
  for (const std::string& path : directories)
    items += 2 + static_cast<std::uint64_t>(std::ranges::count(path, '/'));
  const auto shape = tracker::BloomShape::for_items(std::max<std::uint64_t>(items, 1000), fp_rate);
  tracker::MarkSet marks;
  for (const std::string& path : directories) {
    const tracker::PrefixHashes hashes(path);
    for (const tracker::PathHash& hash : hashes.all()) marks.add(hash, shape);
  }
  for (const std::string& path : trees) marks.add_tree(path);
  return marks;
}

}  // namespace spoor::scanner
