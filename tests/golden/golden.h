// The golden files, unpacked (tests/golden/README.md).
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace spoor::golden {

// By name without `.gz`: "vectors.tsv", "tracker.v7.bin".
inline std::string golden_file(const std::string& name) {
  for (const char* directory : {SPOOR_GOLDEN_UNPACKED, SPOOR_GOLDEN_SOURCE}) {
    std::ifstream in(std::filesystem::path(directory) / name, std::ios::binary);
    if (in) return {std::istreambuf_iterator<char>(in), {}};
  }
  throw std::runtime_error("no golden file " + name);
}

}  // namespace spoor::golden
