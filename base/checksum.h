// The checksum of every format of Spoor: XXH3, 64 bits, seed 0 (https://xxhash.com), which is the same in all
// versions and on all machines.
#pragma once

#include <cstdint>
#include <string_view>

namespace spoor::base {

std::uint64_t checksum(std::string_view bytes);

}  // namespace spoor::base
