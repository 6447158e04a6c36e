// Records of members among the marks: that a tracker joined the cluster. They are made,
// journalled, saved, merged and read like tree marks, so that a scan that reads a tracker learns of all
// members that this tracker has met since the scan's cursor (docs/cluster.md, "Joining").
#pragma once

#include <cstdint>
#include <map>

#include "tracker/cycles/peer_book.h"
#include "tracker/filter/mark_set.h"
#include "tracker/paths/path.h"

namespace spoor::tracker {

Mark joined_mark(const Joined& joined);

struct MemberMarks {
  std::map<PeerId, std::uint64_t> joined;  // the largest run of each
  // There were too many records, or some that have no meaning here: members may be missing above.
  bool is_incomplete = false;
};

MemberMarks member_marks(const MarkSet& marks);

}  // namespace spoor::tracker
