// Records of members among the marks: that a tracker joined the cluster, or has retired from it. They are
// made, journalled, saved, merged and read like tree marks, so that a scan that reads a tracker learns of all
// members that this tracker has met since the scan's cursor (docs/cluster.md, "Joining" and "Leaving").
#pragma once

#include <cstdint>
#include <map>

#include "tracker/cycles/peer_book.h"
#include "tracker/filter/mark_set.h"
#include "tracker/paths/path.h"

namespace spoor::tracker {

// That a tracker acknowledges no more marks, and that the tracker with this record has its marks from a cycle
// on.
struct Retired {
  std::uint64_t run = 0;  // no less than each Joined::run of the tracker
  CycleId adopted_from;   // 0: all

  friend auto operator<=>(const Retired&, const Retired&) = default;
};

Mark joined_mark(const Joined& joined);
Mark retired_mark(const PeerId& id, const Retired& retired);

struct MemberMarks {
  std::map<PeerId, std::uint64_t> joined;  // the largest run of each
  std::map<PeerId, Retired> retired;       // the largest of each
  // There were too many records, or some that have no meaning here: members may be missing above.
  bool is_incomplete = false;
};

MemberMarks member_marks(const MarkSet& marks);

}  // namespace spoor::tracker
