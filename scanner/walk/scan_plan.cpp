#include "scanner/walk/scan_plan.h"

namespace spoor::scanner {

bool reads_all_below(Reason reason) {
  switch (reason) {
    case Reason::clean:
    case Reason::marked:
    case Reason::left_below:
      return false;
    case Reason::tree_mark:
    case Reason::below_a_reason:
    case Reason::full:
    case Reason::unknown:
    case Reason::other_directory:
    case Reason::not_known_below:
      return true;
  }
  return true;
}

ScanPlan::Known ScanPlan::Known::of(const DirectoryRow& row) {
  return {.inode = row.inode,
          .all_below_dirty = row.state == DirectoryState::unread || row.state == DirectoryState::mount_point,
          .left_below = row.pending + row.mount_points > 0};
}

ScanPlan::ScanPlan(const tracker::MarkSet& marks, bool full) : root_(marks), full_(full) {}

// The first two come first: they decide whether what is stored may be used at all.
Reason ScanPlan::reason(const tracker::DriveCursor& marks, std::uint64_t inode,
                        const std::optional<Known>& known, std::optional<Reason> above) const {
  if (!known) return Reason::unknown;
  if (known->inode != inode) return Reason::other_directory;
  if (full_) return Reason::full;
  if (above && reads_all_below(*above)) return Reason::below_a_reason;
  if (known->all_below_dirty) return Reason::not_known_below;
  if (marks.covered()) return Reason::tree_mark;
  if (marks.leads_to_tree_mark() || marks.in_filter()) return Reason::marked;
  return known->left_below ? Reason::left_below : Reason::clean;
}

}  // namespace spoor::scanner
