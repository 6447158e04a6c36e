// The roll of members between two scans: `<data_dir>/members.json` (docs/formats.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/file_system.h"
#include "peer/member_roll.h"

namespace spoor::peer {

inline constexpr std::uint64_t roll_bytes_max = 64U << 20U;

struct LoadedRoll {
  MemberRoll roll;
  std::string problem;      // why somebody may be missing above; empty where none is, or no file is there
  bool is_damaged = false;  // the file is there to read, and means nothing
};

// Never fails without a word: what can't be read is a problem, and not the roll of nobody.
LoadedRoll load_roll(base::FileSystem& files, const std::filesystem::path& data_dir);

// Durable when it returns. Fails with std::errc::file_too_large where it would pass `bytes_max`. Keeps a
// damaged file aside as `members.json.corrupt`, as far as possible.
base::Result<> store_roll(base::FileSystem& files, const std::filesystem::path& data_dir,
                          const MemberRoll& roll, bool is_damaged, std::uint64_t bytes_max = roll_bytes_max);

}  // namespace spoor::peer
