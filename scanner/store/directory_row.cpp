#include "scanner/store/directory_row.h"

#include <algorithm>

namespace spoor::scanner {

void Totals::add(const Totals& other) {
  files = saturating_add(files, other.files);
  bytes = saturating_add(bytes, other.bytes);
  allocated = saturating_add(allocated, other.allocated);
  mtime_ns = std::max(mtime_ns, other.mtime_ns);
}

void DirectoryRow::set_state(DirectoryState to) {
  if (itself_pending()) --pending;
  if (state == DirectoryState::mount_point) --mount_points;
  state = to;
  if (itself_pending()) ++pending;
  if (state == DirectoryState::mount_point) ++mount_points;
}

void DirectoryRow::restart_sums(const Totals& own_totals) {
  own = own_totals;
  subtree = own_totals;
  directories = 0;
  pending = itself_pending() ? 1 : 0;
  mount_points = state == DirectoryState::mount_point ? 1 : 0;
}

void DirectoryRow::add_child(const DirectoryRow& child) {
  add_sums(child);
  ++directories;
}

void DirectoryRow::add_sums(const DirectoryRow& sums) {
  subtree.add(sums.subtree);
  directories += sums.directories;
  pending += sums.pending;
  mount_points += sums.mount_points;
}

void DirectoryRow::remove_child(const DirectoryRow& child) {
  subtree.files -= child.subtree.files;
  subtree.bytes -= child.subtree.bytes;
  subtree.allocated -= child.subtree.allocated;
  directories -= 1 + child.directories;
  pending -= child.pending;
  mount_points -= child.mount_points;
}

}  // namespace spoor::scanner
