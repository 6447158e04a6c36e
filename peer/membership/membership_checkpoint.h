// The state of the registry that a scan has read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "peer/membership/etcd_registry.h"
#include "tracker/cycles/cursor.h"

namespace spoor::peer {

// Stored together with the results of the scan that read the registry.
struct MembershipCheckpoint {
  std::string folder;  // the prefix of its keys
  std::string cluster_id;
  std::int64_t revision = 0;
  std::string log_id;
  std::uint64_t left = 0;
  // Entries erased by hand: neither in the registry nor counted as left.
  std::int64_t erased = 0;

  static MembershipCheckpoint of(const Registry& last_known, const EtcdLocation& location);

  std::string to_text() const;

  friend bool operator==(const MembershipCheckpoint&, const MembershipCheckpoint&) = default;
};

// Why marks may be missing that no peer and no cursor reports: since `stored`, a member registered,
// acknowledged marks and left, or the registry is another or an older one. A member with a cursor of the same
// instance needs no entry here: it becomes a gap when it is not found; neither does a registered one, which
// is expected.
//
// `stored` is the result of MembershipCheckpoint::to_text(), or empty; the cursors are empty before the first
// scan.
std::vector<std::string> gaps_since(std::string_view stored, const Registry& last_known,
                                    const EtcdLocation& location, const tracker::Cursors& cursors);

}  // namespace spoor::peer
