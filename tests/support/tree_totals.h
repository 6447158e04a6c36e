// What is on a node's drives, found without Spoor.
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

// The truth: a walk of its own, by the standard library, over all drives of a node. As in du, the bytes of a
// file with several names count once a drive.
TreeTotals walk_independently(const std::vector<std::filesystem::path>& drives);

}  // namespace spoor::support
