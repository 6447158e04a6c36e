// Records of members among the marks: that a tracker joined the cluster, or left it for good. They are made,
// journalled, saved, merged and read like tree marks, so that a scan that reads a tracker learns of all members that
// this tracker has met since the scan's cursor (docs/cluster.md, "Joining").
#pragma once

#include <set>
#include <string>

#include "tracker/cycles/peer_book.h"
#include "tracker/filter/mark_set.h"
#include "tracker/paths/path.h"

namespace spoor::tracker {

Mark joined_mark(const PeerId& id);
Mark retired_mark(const PeerId& id);

struct MemberMarks {
  std::set<PeerId> joined;
  std::set<PeerId> retired;
  // There were too many records, or some that have no meaning here: members may be missing above.
  bool is_incomplete = false;
};

MemberMarks member_marks(const MarkSet& marks);

}  // namespace spoor::tracker
