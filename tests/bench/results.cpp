#include "tests/bench/results.h"

#include <fmt/core.h>

namespace spoor::bench {

std::filesystem::path results_file(std::string_view name) {
  return std::filesystem::path(SPOOR_BENCH_FOLDER) / fmt::format("{}.json", name);
}

}  // namespace spoor::bench
