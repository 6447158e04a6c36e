#include "scanner/audit/audit.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <string_view>

#include "scanner/store/directory_store.h"
#include "tracker/filter/hash.h"
#include "tracker/filter/mark_cursor.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

// Marks come first: what is due for the audit and was not read in this time is left for the next scan.
constexpr std::chrono::minutes time_max{10};
// A change is not called missed if it was made so shortly before the scan: its mark may be on the way.
constexpr std::chrono::minutes grace{1};
constexpr std::size_t missed_kept_max = 1000;
constexpr std::size_t missed_bytes_max = std::size_t{4} << 20U;
// The audit stops there, and continues in the next scan.
constexpr std::size_t differing_bytes_max = std::size_t{64} << 20U;
// Of a deep tree, the lower levels and a few of the upper ones stay open, so that each directory costs about
// one open, however deep it lies.
constexpr std::size_t open_levels = 16;
constexpr std::size_t anchor_distance = 64;

struct Outcome {
  std::uint64_t visited = 0;              // those included that the walk reads
  std::uint64_t audited = 0;              // read
  std::uint64_t missed = 0;               // differ, though no mark covers that
  std::vector<std::string> missed_paths;  // logical; the first ones
  DifferingPaths differing;               // missed or not
  std::optional<std::string> last_path;   // visited on this drive; nothing for none
  bool is_at_end = false;                 // of the drive
  bool is_left_to_walk = false;           // the walk reads all of the drive, if it can: nothing was visited
};

// Of one drive, in one scan.
class DriveAudit {
 public:
  // `started`: when the audit of the scan began; no directory is read from `until` on. Both must outlive it.
  DriveAudit(WalkContext& context, const KnownDrive& drive, base::SteadyTime started, base::SteadyTime until)
      : context_(context), drive_(drive), keep_from_(started + context.options.commit_every), until_(until) {}

  // Visits at most `count` directories behind `after`, or from the root on, until the time is over; what lies
  // below a directory of which the walk reads everything is visited with it, at once. Once.
  Outcome run(const std::optional<std::string>& after, std::uint64_t count) {
    DirectoryStore& directories = context_.transaction.directories();
    auto top = context_.environment.reader.open_drive(drive_.drive.path);
    const std::int64_t parent_of_root = DirectoryStore::parent_of_root(drive_.id);
    const auto root = directories.find(parent_of_root, "");
    const bool is_known = root && root->state != DirectoryState::unread;
    if (is_known && !top) {
      walk_again("");  // the walk opens it as well, and reports the error
      return std::move(outcome_);
    }
    if (!is_known || top->inode != root->inode || is_another(*root, *top)) {
      outcome_.is_left_to_walk = true;
      return std::move(outcome_);
    }
    enter(*root, "").handle = std::move(*top);
    StoredTree tree(directories, parent_of_root);
    if (after) {
      // The directory that the audit continues behind may be gone, and so may those above it.
      std::int64_t above = root->id;
      for (tracker::ComponentCursor at(*after); at.next();) {
        const auto row = directories.find(above, at.component());
        if (!row) break;
        enter(*row, at.prefix());
        above = row->id;
      }
      tree.seek_behind(*after);
    }
    visit_rows(tree, count);
    return std::move(outcome_);
  }

 private:
  // A directory on the way to the one that is visited, that one included.
  struct Level {
    Level(const DirectoryRow& row, std::size_t bytes, const tracker::DriveCursor& cursor)
        : path_bytes(bytes), marks(cursor), inode(row.inode), birth(row.birth) {}

    std::size_t path_bytes = 0;
    tracker::DriveCursor marks;
    std::uint64_t inode = 0;  // as stored
    std::uint32_t birth = 0;
    bool is_walked = false;     // marks lead the walk to it
    bool is_uncertain = false;  // it may be another directory than the stored one, by a change that is marked
    bool is_left = false;       // all below it is left to the walk
    bool is_counted = false;    // it differs, and has been counted
    std::optional<DirectoryHandle> handle;
  };

  void visit_rows(StoredTree& tree, std::uint64_t count) {
    while (outcome_.visited < count && differing_bytes_ < differing_bytes_max) {
      context_.throw_if_stopped();
      if (!has_time()) return;
      const auto row = tree.next();
      outcome_.is_at_end = !row;
      if (!row) return;
      ++outcome_.visited;
      outcome_.last_path = tree.path();
      const Level& level = enter(*row, tree.path());
      if (!level.is_left && !level.is_walked && row->state == DirectoryState::ok) visit(*row, tree.path());
      if (!open_.back().is_left) continue;
      tree.skip_below(*row);
      outcome_.visited += row->directories;
    }
  }

  // Of a long audit, the input of the scan is committed.
  bool has_time() {
    const base::SteadyTime now = context_.environment.clock.steady_now();
    if (!is_long_ && now >= keep_from_ && now < until_) {
      is_long_ = true;
      context_.commit_so_far();
    }
    return now < until_;
  }

  // Goes to a directory whose parent was entered, not necessarily last. No walk reaches a filter's false
  // positive below a directory that is in no filter.
  Level& enter(const DirectoryRow& row, std::string_view path) {
    if (path.empty()) {
      if (!open_.empty()) return open_.front();
      Level& root = open_.emplace_back(
          row, 0, tracker::DriveCursor(tracker::MarkCursor(context_.input.marks), drive_.drive.identity));
      root.is_walked = root.marks.may_be_dirty();
      root.is_left = root.marks.covered();
      return root;
    }
    const std::size_t above = tracker::parent_path(path).size();
    while (open_.size() > 1 && open_.back().path_bytes > above) open_.pop_back();
    Level& parent = open_.back();
    tracker::DriveCursor marks = parent.marks;
    marks.descend(row.name);
    Level level(row, path.size(), marks);
    level.is_walked = parent.is_walked && marks.may_be_dirty();
    const bool is_read_below =
        row.state == DirectoryState::unread || row.state == DirectoryState::mount_point;
    level.is_left = parent.is_left || marks.covered() || is_read_below;
    level.is_uncertain = parent.is_uncertain;
    return open_.emplace_back(std::move(level));
  }

  void visit(const DirectoryRow& row, const std::string& path) {
    context_.wait_until_due();
    if (!open(path)) return;
    const std::size_t number = open_.size() - 1;
    Level& level = open_.back();
    const auto listing = context_.environment.reader.read(*level.handle, path, context_.options.rules,
                                                          ListingParts(), context_.environment.stop);
    context_.throw_if_stopped();
    ++outcome_.audited;
    if (!listing || listing->incomplete) {
      differs_without_count(number, path);
      if (!listing) leave(number);
    } else if (listing->signature != row.signature) {
      // A name that comes or goes elsewhere changes the ctime of the file under all its names, and is marked
      // there. Names that the rules ignore change a directory's own times, and no mark can cover that.
      const bool may_be_a_link =
          listing->own == row.own && context_.transaction.links().holds_any(drive_.id, path);
      if (may_be_a_link || level.is_uncertain || row.entries == listing->entries) {
        differs_without_count(number, path);
      } else {
        differs(level, path, listing->ctime_ns);
      }
    }
  }

  // Opens the directory that was entered last, and those above it as needed. If one of them can't be opened,
  // all below that one is left to the walk.
  bool open(const std::string& path) {
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

  bool open_level(std::size_t number, const std::string& path) {
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
  bool is_the_stored_one(std::size_t number, const DirectoryHandle& handle, const std::string& path) {
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

  void leave(std::size_t number) {
    for (; number < open_.size(); ++number) open_[number].is_left = true;
  }

  void differs_without_count(std::size_t number, const std::string& path) {
    if (!open_[number].is_walked) walk_again(path.substr(0, open_[number].path_bytes));
  }

  // The directory is gone, or another one has its name. That is one change, of the directory above; a mark of
  // the name leads the walk there. A walk that reads the one above for another reason does not notice the
  // change if the inode number is the same.
  void gone(std::size_t number, const std::string& path) {
    Level& parent = open_[number - 1];
    differs_without_count(number, path);
    if (parent.is_walked || parent.is_counted || parent.is_uncertain) return;
    differs(parent, path.substr(0, parent.path_bytes), parent.handle->ctime_ns);
  }

  void differs(Level& level, const std::string& path, std::int64_t changed_ns) {
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
  void walk_again(const std::string& path) {
    DifferingPaths& differing = outcome_.differing;
    const bool is_too_long = path.size() > tracker::path_bytes_max;
    auto& paths = is_too_long ? differing.trees : differing.directories;
    const std::size_t end = is_too_long ? path.rfind('/', tracker::path_bytes_max) : path.size();
    const auto [entry, is_new] = paths.insert(path.substr(0, end));
    if (is_new) differing_bytes_ += sizeof(std::string) + entry->size();
  }

  // A time ahead of the clock was given before the clock was set back.
  bool may_be_on_the_way(std::int64_t changed_ns) const {
    const base::WallTime now = context_.environment.clock.wall_now();
    const base::WallTime from = std::min(context_.input.started_at, now) - grace;
    const base::WallTime to = std::max(context_.input.started_at, now) + grace;
    return changed_ns >= from.time_since_epoch().count() && changed_ns <= to.time_since_epoch().count();
  }

  WalkContext& context_;
  const KnownDrive& drive_;
  const base::SteadyTime keep_from_;
  const base::SteadyTime until_;
  bool is_long_ = false;
  std::deque<Level> open_;  // the root first; those far above are closed
  Outcome outcome_;
  std::size_t missed_bytes_ = 0;  // of its paths
  std::size_t differing_bytes_ = 0;
};

}  // namespace

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

// A scan that is killed meanwhile is resumed without an audit, so that its marks are walked in any case.
DifferingPaths Audit::run(const std::vector<KnownDrive>& drives, bool walks_everything) {
  for (const KnownDrive& drive : drives) drives_.push_back(restore(drive));
  DifferingPaths differing;
  if (walks_everything || context_.options.audit_period.count() == 0) return differing;
  const base::SteadyTime now = context_.environment.clock.steady_now();
  // If the time is too short for all drives, the one that waited longest comes first.
  std::vector<OnDrive*> in_order;
  for (OnDrive& on : drives_) {
    if (on.drive.drive.refused.empty()) in_order.push_back(&on);
  }
  std::ranges::sort(in_order, {}, [](const OnDrive* on) { return std::pair(on->state.oldest(), on); });
  for (OnDrive* const on : in_order) run_on(*on, now, context_.is_resumed ? now : now + time_max, differing);
  return differing;
}

// What is stored: the state, and if there is one, NUL and the position.
Audit::OnDrive Audit::restore(const KnownDrive& drive) {
  OnDrive on{drive, AuditState::begun(context_.input.started_at), std::nullopt};
  const std::string stored = context_.transaction.setting(audit_key(drive.id)).value_or("");
  const std::size_t end = stored.find('\0');
  if (const auto state = AuditState::parse(stored.substr(0, end))) {
    on.state = *state;
    if (end != std::string::npos) on.position = stored.substr(end + 1);
  }
  const bool begins = on.state.advance_to(context_.input.started_at, context_.options.audit_period);
  if (begins) on.position.reset();
  return on;
}

void Audit::run_on(OnDrive& on, base::SteadyTime started, base::SteadyTime until, DifferingPaths& differing) {
  const std::int64_t parent = DirectoryStore::parent_of_root(on.drive.id);
  const auto root = context_.transaction.directories().find(parent, "");
  const std::uint64_t all = root ? 1 + root->directories : 0;
  const std::uint64_t due = on.state.due(all, context_.options.audit_period);
  if (due == 0) return;
  Outcome outcome = DriveAudit(context_, on.drive, started, until).run(on.position, due);
  on.is_walked_in_full = outcome.is_left_to_walk;
  if (outcome.last_path) {
    // The walk reads them, even where it knows their listings.
    context_.audited.push_back({on.drive.id, on.position, *outcome.last_path});
    on.position = outcome.last_path;
  }
  if (outcome.is_at_end) on.position.reset();
  const bool has_moved = outcome.visited > 0 || outcome.is_at_end;
  if (has_moved) on.state.visited(outcome.visited, all, outcome.is_at_end);
  report_.audited += outcome.audited;
  report_.missed += outcome.missed;
  for (std::string& path : outcome.missed_paths) {
    const bool is_new = std::ranges::find(report_.missed_paths, path) == report_.missed_paths.end();
    if (is_new) report_.missed_paths.push_back(std::move(path));
    if (!is_new) --report_.missed;
  }
  differing.directories.merge(std::move(outcome.differing.directories));
  differing.trees.merge(std::move(outcome.differing.trees));
}

void Audit::keep(bool walked_everything, const std::vector<ScanError>& failed) {
  std::optional<base::WallTime> oldest;
  for (OnDrive& on : drives_) {
    const bool has_failed =
        std::ranges::find(failed, on.drive.drive.path.native(), &ScanError::path) != failed.end();
    if ((walked_everything || on.is_walked_in_full) && !has_failed) {
      on.state = AuditState::begun(context_.input.started_at);
      on.position.reset();
    }
    std::string text = on.state.to_text();
    if (on.position) text += '\0' + *on.position;
    context_.transaction.set_setting(audit_key(on.drive.id), text);
    oldest = std::min(oldest.value_or(on.state.oldest()), on.state.oldest());
  }
  // The clock may have been set back while the scan ran.
  const bool is_on = context_.options.audit_period.count() > 0;
  if (is_on && oldest) report_.oldest_total = std::min(*oldest, context_.environment.clock.wall_now());
}

}  // namespace spoor::scanner
