#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "base/clock.h"
#include "peer/membership/member_source.h"
#include "tracker/cycles/ids.h"

namespace spoor::peer {

// The result of the requests to an address, whatever node is behind it.
enum class AddressState {
  answered,  // a tracker of this cluster responded
  silent,    // no tracker of this cluster responded
  left,      // silent and departed; its tracker responded at another address
};

using AddressStates = std::map<std::string, AddressState>;  // by URL

// The members that the sources listed last, and those that departed since. Members are identified by URL.
struct LastKnownMembers {
  struct Source {
    std::set<std::string> listed;
    // No longer listed, with the time for which they have been silent. They are still requested: the node may
    // be down with acknowledged marks that no scan has read, or it may still acknowledge marks.
    std::map<std::string, std::chrono::milliseconds> departed;

    friend bool operator==(const Source&, const Source&) = default;
  };
  std::map<std::string, Source> sources;  // by SourceListing::source
  // The time of the last requests to its members.
  std::optional<base::WallTime> asked_at;

  friend bool operator==(const LastKnownMembers&, const LastKnownMembers&) = default;
};

struct LastKnownRules {
  // Of the node's own daemon, which is requested anyway.
  std::string own_url;
  // Bounds the departed members of a source, and the listed ones that its listing lacks. Beyond it, those
  // that were silent longest are evicted early.
  std::size_t kept_max = 4096;
};

// The members to request after these listings; evicts none. The members of a source with a problem stay
// listed. A member that is no longer listed is departed. A source without a listing is no longer configured:
// all of its members are departed.
LastKnownMembers update_last_known_members(const LastKnownMembers& before,
                                           std::span<const SourceListing> listings,
                                           const LastKnownRules& rules);

// The members after `responses` at time `now`. Silence grows by the time since the last requests, at most a
// quarter of `forget_after`, so that a clock that jumps does not count as several scans; a response resets
// it. A departed member is evicted once it was silent for `forget_after` and in this scan, if its source has
// no problem and `stored`, the cursors of the last stored scan, has one for it: only such a cursor becomes a
// gap. A departed address whose tracker responds elsewhere is evicted at once. A source that is no longer
// configured evicts each silent member.
LastKnownMembers apply_responses(const LastKnownMembers& before, std::span<const SourceListing> listings,
                                 const AddressStates& responses, base::WallTime now,
                                 const tracker::Cursors& stored, const LastKnownRules& rules);

}  // namespace spoor::peer
