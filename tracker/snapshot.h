// `.tracker.bin`, version 8: a tracker's whole state with a checksum over all of it
// (docs/formats.md, "Snapshot").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "tracker/tracker.h"

namespace spoor::tracker {

inline constexpr std::uint8_t snapshot_version = 8;

// A snapshot is read into memory whole; a larger file is none.
inline constexpr std::uint64_t snapshot_bytes_max = std::uint64_t{4} << 30U;

// Whose state a snapshot is.
struct NodeIdentity {
  std::string cluster;
  std::string node;

  friend bool operator==(const NodeIdentity&, const NodeIdentity&) = default;
};

struct Snapshot {
  NodeIdentity owner;
  // Counts the saves of a node, over restarts: of two snapshots the higher one is the newer.
  std::uint64_t generation = 0;
  base::WallTime saved_at{};
  TrackerState state;
};

std::string encode_snapshot(const Snapshot& snapshot);

// Fails with Errc::snapshot_unknown where the first byte is another version, and with
// Errc::snapshot_corrupt where anything else is wrong; never allocates more than the bytes hold.
base::Result<Snapshot> decode_snapshot(std::string_view bytes);

}  // namespace spoor::tracker
