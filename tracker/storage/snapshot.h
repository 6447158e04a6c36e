// `.tracker.bin`, version 8: a tracker's whole state with a checksum (docs/formats.md, "Snapshot").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "tracker/cycles/tracker.h"

namespace spoor::tracker {

inline constexpr std::uint8_t snapshot_version = 8;

// For a reader that does not know what the tracker may write. A snapshot is read into memory completely.
inline constexpr std::uint64_t snapshot_bytes_max = std::uint64_t{4} << 30U;

// The size of a snapshot that a tracker with these options, or the default ones, may write: a larger file is
// none.
std::uint64_t snapshot_bytes_max_of(const Tracker::Options& tracker);

// The node that a snapshot belongs to.
struct NodeIdentity {
  std::string cluster;
  std::string node;

  friend bool operator==(const NodeIdentity&, const NodeIdentity&) = default;
};

struct Snapshot {
  NodeIdentity owner;
  // Counts the saves of a node across restarts: of two snapshots, the one with the higher number is newer.
  std::uint64_t generation = 0;
  base::WallTime saved_at{};
  TrackerState state;
};

std::string encode_snapshot(const Snapshot& snapshot);

// Fails with Errc::snapshot_unknown if the first byte is another version, and with Errc::snapshot_corrupt on
// any other error. The memory is proportional to the size of `bytes`.
base::Result<Snapshot> decode_snapshot(std::string_view bytes);

}  // namespace spoor::tracker
