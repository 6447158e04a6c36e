// The least that any walker has to do: list each directory, and look at each file in it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace spoor::bench {

enum class Depth { only_these, all_below };

// Visits these directories of the tree, by two threads, and keeps nothing of what it sees. Gives the number
// of directories. Throws std::system_error.
std::uint64_t visit(const std::filesystem::path& tree, const std::vector<std::string>& paths, Depth depth);

}  // namespace spoor::bench
