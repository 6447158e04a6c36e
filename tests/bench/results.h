// Where a benchmark leaves its figures for machines.
#pragma once

#include <filesystem>
#include <string_view>

namespace spoor::bench {

// build/release/bench/NAME.json
std::filesystem::path results_file(std::string_view name);

}  // namespace spoor::bench
