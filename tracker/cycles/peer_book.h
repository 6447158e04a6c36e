// What one scanner knows of the trackers that it reads (docs/cluster.md).
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "tracker/cycles/ids.h"

namespace spoor::tracker {

// One tracker, as long as it loses no marks.
struct PeerId {
  std::string name;  // of its node
  InstanceId instance;

  friend auto operator<=>(const PeerId&, const PeerId&) = default;
};

// That a tracker is a member.
struct Joined {
  PeerId id;
  // Grows with each start of its daemon, and with each hour that it runs, or less: so others record it anew,
  // and a scan for which it was gone, or silent, learns that it is not.
  std::uint64_t run = 0;

  friend bool operator==(const Joined&, const Joined&) = default;
};

constexpr std::uint64_t run_of(std::uint64_t starts, std::uint64_t periods) {
  return (starts << 20U) + periods;
}

// Of a start, however long it runs.
constexpr std::uint64_t last_run_of(std::uint64_t starts) { return run_of(starts + 1, 0) - 1; }

enum class Standing {
  expected,  // a scan that does not read it is partial
  gone,      // everything was walked in its place. If it responds again, it is read from its cycle on
  copied,    // there are, or were, two trackers with this id: the next read is a gap
  retired,   // it acknowledges no marks, and all that it has acknowledged are walked
};
inline constexpr Standing standing_max = Standing::retired;

struct KnownPeer {
  // The first cycle whose marks are not walked yet; 0: it was never read, and all its marks are to be walked.
  CycleId cycle;
  // The URL where it was read last; empty: it was never read, or is the node's own daemon.
  std::string home = {};
  Standing standing = Standing::expected;
  // The time between the scans that it did not respond to, since its last response.
  std::chrono::milliseconds silent{0};
  // The largest run in the records of others.
  std::uint64_t run = 0;

  // Whether a scan that does not read it is partial.
  bool is_expected() const { return standing != Standing::gone && standing != Standing::retired; }

  friend bool operator==(const KnownPeer&, const KnownPeer&) = default;
};

using PeerBook = std::map<PeerId, KnownPeer>;

}  // namespace spoor::tracker
