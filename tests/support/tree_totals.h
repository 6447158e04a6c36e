// The totals of a node's drives, determined without Spoor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <vector>

namespace spoor::support {

struct TreeTotals {
  std::uint64_t files = 0;
  std::uint64_t dirs = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const TreeTotals&, const TreeTotals&) = default;
};

std::ostream& operator<<(std::ostream& out, const TreeTotals& totals);

// The true totals: a walk over all drives of a node with the standard library. As in du, the bytes of a file
// with several names count once per drive.
TreeTotals walk_independently(const std::vector<std::filesystem::path>& drives);

}  // namespace spoor::support
