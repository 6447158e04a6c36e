#include "scanner/audit.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "scanner/errors.h"
#include "scanner/walker.h"
#include "tracker/mark_cursor.h"
#include "tracker/path.h"
#include "tracker/prefix_hashes.h"

namespace spoor::scanner {
base::Result<Audit::Outcome> Audit::run(const AuditedDrive& drive, const std::optional<std::string>& after,
                                        std::uint64_t count) {
  outcome_ = {};
  const auto top = context_.reader.open_drive(drive.path);
  const auto root = context_.store.find(DirectoryStore::parent_of_root(drive.id), "");
  if (!root) return root.error();
  const bool is_the_drive = top && *root && top->inode == (*root)->inode && !is_another(**root, *top);
  if (!is_the_drive) {
    outcome_.is_at_end = true;
    return std::move(outcome_);
  }
  StoredTree tree(context_.store, DirectoryStore::parent_of_root(drive.id));
  if (after) {
    if (auto sought = tree.seek_behind(*after); !sought) return sought.error();
  }
  while (outcome_.visited < count) {
    if (context_.stop.stop_requested()) return interrupted_error();
    if (!has_time()) break;
    const auto row = tree.next();
    if (!row) return row.error();
    if (!*row) {
      outcome_.is_at_end = true;
      break;
    }
    ++outcome_.visited;
    outcome_.last_path = tree.path();
    const bool is_left = (*row)->state != DirectoryState::ok;
    if (is_left || is_walked(tree.path())) continue;
    if (auto visited = visit(*top, **row, tree.path()); !visited) return visited.error();
  }
  return std::move(outcome_);
}

bool Audit::has_time() {
  const base::SteadyTime now = context_.clock.steady_now();
  if (!is_long_ && context_.lasts && now >= context_.long_from) {
    is_long_ = true;
    context_.lasts();
  }
  return now < context_.until;
}

// A filter's false positive below a directory that is in no filter is one that no walk comes to.
bool Audit::is_walked(std::string_view path) const {
  tracker::MarkCursor marks(context_.marks);
  const auto is_marked = [&] { return marks.in_filter() || marks.leads_to_tree_mark(); };
  for (tracker::ComponentCursor at(path); at.next();) {
    if (marks.covered()) return true;
    if (!is_marked()) return false;
    marks.descend(at.component());
  }
  return marks.covered() || is_marked();
}

base::Result<> Audit::visit(const DirectoryHandle& top, const DirectoryRow& row, const std::string& path) {
  context_.pace.wait_turn(context_.stop);
  auto handle = context_.reader.open_below(top, path.empty() ? "." : path);
  if (!handle) {
    differs(path, is_gone(handle.error().code) ? when_it_went(top, path)
                                               : std::numeric_limits<std::int64_t>::max());
    return {};
  }
  const auto listing =
      context_.reader.read(*handle, path, context_.rules, FileNames::unwanted, context_.stop);
  if (context_.stop.stop_requested()) return interrupted_error();
  ++outcome_.audited;
  // Not by its inode number: what is stored is the listing's, which on some file systems is never its own.
  const bool is_same_directory = handle->device == top.device && !is_another(row, *handle);
  if (!listing || listing->incomplete || !is_same_directory) {
    // Another directory in its place is a change of the one above, which tells when that was.
    differs(path, listing && !is_same_directory ? when_it_went(top, path)
                                                : std::numeric_limits<std::int64_t>::max());
  } else if (listing->signature != row.signature) {
    differs(path, listing->ctime_ns);
  }
  return {};
}

void Audit::differs(const std::string& path, std::int64_t changed_ns) {
  if (outcome_.differing.size() < differing_max) outcome_.differing.insert(path);
  if (changed_ns >= (context_.started_at - grace).time_since_epoch().count()) return;
  ++outcome_.missed;
  if (outcome_.missed_paths.size() < missed_kept_max) outcome_.missed_paths.push_back(path);
}

// What is above it was changed then, if that is still there itself.
std::int64_t Audit::when_it_went(const DirectoryHandle& top, std::string_view path) const {
  while (!path.empty()) {
    path = tracker::parent_path(path);
    const auto above = context_.reader.open_below(top, path.empty() ? "." : path);
    if (above) return above->ctime_ns;
    if (!is_gone(above.error().code)) break;
  }
  return std::numeric_limits<std::int64_t>::max();
}

tracker::MarkSet marks_of(const std::set<std::string>& paths) {
  constexpr double fp_rate = 1e-6;
  std::uint64_t items = 0;
  for (const std::string& path : paths)
    items += 2 + static_cast<std::uint64_t>(std::ranges::count(path, '/'));
  const auto shape = tracker::BloomShape::for_items(std::max<std::uint64_t>(items, 1000), fp_rate);
  tracker::MarkSet marks;
  for (const std::string& path : paths) {
    const tracker::PrefixHashes hashes(path);
    for (const tracker::PathHash& hash : hashes.all()) marks.add(hash, shape);
  }
  return marks;
}

}  // namespace spoor::scanner
