// What the sources of members (DNS names, etcd) said last: who is listed, and who was until lately.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "peer/address_state.h"
#include "tracker/cursor.h"

namespace spoor::peer {

struct MemberRoll {
  // Members are known by their URLs.
  struct Source {
    std::set<std::string> listed;
    // No longer listed, with the time for which they have been silent. Still asked: the node may be down,
    // with acknowledged marks that nobody read, or it may go on acknowledging some.
    std::map<std::string, std::chrono::milliseconds> lingering;

    friend bool operator==(const Source&, const Source&) = default;
  };
  std::map<std::string, Source> sources;  // by the words for it: "dns spoor.example:7420"
  // When its members were asked last.
  std::optional<base::WallTime> asked_at;

  friend bool operator==(const MemberRoll&, const MemberRoll&) = default;
};

// What one source said now.
struct SourceAnswer {
  std::string source;
  std::vector<std::string> urls;
  std::vector<std::string> lingering;  // to be asked, but not expected to answer
  std::string problem;                 // why some may be missing above; empty where none is
  std::chrono::milliseconds forget_after{0};
  std::set<std::string> struck = {};  // URLs that need not be silent for so long: somebody has seen to that
};

struct RollRules {
  // Of the node's own daemon, which is asked anyway.
  std::string own_url;
  // Of one source: so many linger, and so many are listed whom its answer does not have. Over this, those
  // that were silent for the longest are forgotten early.
  std::size_t kept_max = 4096;
};

// The roll after these answers, to be asked; forgets nobody. Where a source has a problem, everybody whom it
// listed before stays listed. Who is no longer listed lingers. Sources without an answer are no longer
// configured: they list nobody, from now on.
MemberRoll update_roll(const MemberRoll& before, std::span<const SourceAnswer> answers,
                       const RollRules& rules);

// The roll after its members were asked, with what came of it. Silence counts for the time since they were
// asked last, but a quarter of `forget_after` at most: no clock that jumps makes up for several scans. Who
// answered begins anew. Forgotten is who was silent for `forget_after` in all, and in this very scan, if its
// source has no problem and a stored scan has a cursor for it: only such a cursor makes a gap of whoever is
// no longer asked. Who lingers where its node was, and is found elsewhere, is forgotten at once. Sources
// without an answer forget whoever is silent.
MemberRoll settle_roll(const MemberRoll& before, std::span<const SourceAnswer> answers,
                       const AddressStates& asked, base::WallTime now, const tracker::Cursors& stored,
                       const RollRules& rules);

}  // namespace spoor::peer
