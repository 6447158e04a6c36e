// The last-known members between two scans: `<data_dir>/members.json` (docs/formats.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/file_system.h"
#include "peer/membership/last_known_members.h"

namespace spoor::peer {

inline constexpr std::uint64_t last_known_members_bytes_max = 64U << 20U;

struct LoadedMembers {
  LastKnownMembers last_known;
  std::string problem;      // why members may be missing above; empty: none are, or there is no file
  bool is_damaged = false;  // the file is readable, but invalid
};

// An unreadable or damaged file is reported in `problem`.
LoadedMembers load_last_known_members(base::FileSystem& files, const std::filesystem::path& data_dir);

// Durable when it returns. Fails with std::errc::file_too_large if it would exceed `bytes_max`. Renames a
// damaged file to `members.json.corrupt`, if possible.
base::Result<> store_last_known_members(base::FileSystem& files, const std::filesystem::path& data_dir,
                                        const LastKnownMembers& last_known, bool is_damaged,
                                        std::uint64_t bytes_max = last_known_members_bytes_max);

}  // namespace spoor::peer
