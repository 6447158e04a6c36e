// What the sources of members (DNS names, etcd) said last: who is listed, and who was until lately.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tracker/cursor.h"

namespace spoor::peer {

struct MemberRoll {
  // Members are known by their URLs.
  struct Source {
    std::set<std::string> listed;
    // No longer listed, with the time since when that is known. Still asked: its node may be down, with
    // acknowledged marks that nobody read.
    std::map<std::string, base::WallTime> lingering;

    friend bool operator==(const Source&, const Source&) = default;
  };
  std::map<std::string, Source> sources;  // by the words for it: "dns spoor.example:7420"

  friend bool operator==(const MemberRoll&, const MemberRoll&) = default;
};

// What one source said now.
struct SourceAnswer {
  std::string source;
  std::vector<std::string> urls;
  std::string problem;  // why some may be missing above; empty where none is
  std::chrono::milliseconds forget_after{0};
};

struct RollRules {
  // Of the node's own daemon, which is asked anyway.
  std::string own_url;
  // Of one source: so many linger, and so many are listed whom its answer does not have. Over this, those
  // that linger for the longest are forgotten early.
  std::size_t kept_max = 4096;
};

// The roll after these answers. Where a source has a problem, everybody whom it listed before stays listed.
// A URL that it no longer lists lingers for `forget_after`, and longer where no stored scan has a cursor for
// it: only such a cursor makes a gap of whoever is no longer asked. A clock set back lengthens that, one set
// forward shortens it. Sources without an answer are no longer configured: they list nobody, from now on.
MemberRoll update_roll(const MemberRoll& before, std::span<const SourceAnswer> answers, base::WallTime now,
                       const tracker::Cursors& stored, const RollRules& rules);

}  // namespace spoor::peer
