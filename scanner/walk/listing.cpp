#include "scanner/walk/listing.h"

#include <xxhash.h>

#include <algorithm>
#include <array>

namespace spoor::scanner {

void EntryDigests::add_subdirectory(std::string_view name) { add(XXH3_64bits(name.data(), name.size())); }

std::uint64_t EntryDigests::signature(std::uint64_t bytes, std::uint64_t allocated, std::int64_t mtime_ns,
                                      std::int64_t ctime_ns) const {
  const std::array<std::uint64_t, 6> sums = {count,
                                             bytes,
                                             allocated,
                                             sum,
                                             static_cast<std::uint64_t>(mtime_ns),
                                             static_cast<std::uint64_t>(ctime_ns)};
  return XXH3_64bits(sums.data(), sizeof sums);
}

std::uint64_t EntryDigests::entries() const {
  const std::array<std::uint64_t, 2> sums = {count, sum};
  return std::max<std::uint64_t>(XXH3_64bits(sums.data(), sizeof sums), 1);
}

}  // namespace spoor::scanner
