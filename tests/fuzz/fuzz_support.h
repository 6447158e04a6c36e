// What the fuzz targets share: how a broken rule ends a run, and the bound on memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spoor::fuzz {

// Ends the run where the rule does not hold; libFuzzer then keeps the input.
void require(bool holds, const char* rule);

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// While one lives, a piece of memory larger than what such an input could hold ends the run where it is
// asked for: a length must not be believed before the bytes are there. A small multiple is allowed, for
// vectors that grow and for what takes more room in memory than in a file.
//
// One at a time.
class MemoryBound {
 public:
  explicit MemoryBound(std::size_t input_bytes);
  MemoryBound(const MemoryBound&) = delete;
  MemoryBound& operator=(const MemoryBound&) = delete;
  ~MemoryBound();
};

}  // namespace spoor::fuzz
