#include "scanner/walk/scan_plan.h"

namespace spoor::scanner {

bool reads_all_below(Reason reason) {
  return reason != Reason::clean && reason != Reason::marked && reason != Reason::left_below;
}

ScanPlan::Known ScanPlan::Known::of(const DirectoryRow& row) {
  return {.inode = row.inode,
          .all_below_dirty = row.state == DirectoryState::unread || row.state == DirectoryState::mount_point,
          .left_below = row.pending + row.mount_points > 0};
}

// The first two come first: they decide whether what is stored may be used at all.
Reason ScanPlan::reason(const PlanCursor& at, std::uint64_t inode, const std::optional<Known>& known,
                        std::optional<Reason> above) const {
  if (!known) return Reason::unknown;
  if (known->inode != inode) return Reason::other_directory;
  if (full_ && !at.resumed.is_done()) return Reason::full;
  if (above && reads_all_below(*above)) return Reason::below_a_reason;
  if (known->all_below_dirty) return Reason::not_known_below;
  if (!at.resumed.is_done()) {
    if (at.marks.covered()) return Reason::tree_mark;
    if (at.marks.leads_to_tree_mark() || at.marks.in_filter()) return Reason::marked;
  }
  return known->left_below || at.resumed.is_on_the_way() ? Reason::left_below : Reason::clean;
}

void ResumePoint::descend(std::string_view name) {
  if (relation_ != Relation::on_the_way) return;
  const std::size_t slash = rest_.find('/');
  const std::string_view next = rest_.substr(0, slash);
  if (name != next) {
    *this = name < next ? done() : ResumePoint();
  } else if (slash == std::string_view::npos) {
    *this = done();
  } else {
    rest_.remove_prefix(slash + 1);
  }
}

}  // namespace spoor::scanner
