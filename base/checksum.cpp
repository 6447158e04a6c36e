#include "base/checksum.h"

#include <xxhash.h>

namespace spoor::base {

std::uint64_t checksum(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace spoor::base
