// MinIO's `.tracker.bin`, format version 7 (2021-2023): read, never written
// (docs/formats.md, "MinIO version 7").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "tracker/cycles/ids.h"
#include "tracker/filter/bloom_filter.h"

namespace spoor::tracker {

inline constexpr std::uint8_t minio_snapshot_version = 7;

struct MinioCycle {
  CycleId id;
  BloomFilter filter;
};

struct MinioSnapshot {
  base::WallTime saved_at{};
  CycleId current;
  std::vector<MinioCycle> cycles;  // oldest first, the current one last
};

// Fails with Errc::snapshot_unknown for another version, and with Errc::snapshot_corrupt for impossible
// lengths or shapes. The format has no checksum: other damage is not detected.
base::Result<MinioSnapshot> decode_minio_snapshot(std::string_view bytes);

// The key of a path in such a file: directory objects (`name__XLDIR__`) without their suffix.
std::string_view minio_key(std::string_view path);

}  // namespace spoor::tracker
