#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace spoor::tracker {

// The number of bits set. Without the POPCNT instruction, which not every x86-64 processor has, std::popcount
// is a function call for each word; this code compiles to vector instructions.
inline std::uint64_t count_bits(std::span<const std::uint64_t> words) {
  constexpr std::size_t block_words = 4095;  // of 16 bits in each of four counters, none of which overflows
  std::uint64_t count = 0;
  while (!words.empty()) {
    const auto block = words.first(std::min(block_words, words.size()));
    words = words.subspan(block.size());
    std::uint64_t counters = 0;
    for (std::uint64_t word : block) {
      word -= word >> 1U & 0x5555555555555555U;
      word = (word & 0x3333333333333333U) + (word >> 2U & 0x3333333333333333U);
      word = (word + (word >> 4U)) & 0x0f0f0f0f0f0f0f0fU;
      counters += (word + (word >> 8U)) & 0x00ff00ff00ff00ffU;
    }
    for (; counters != 0; counters >>= 16U) count += counters & 0xffffU;
  }
  return count;
}

}  // namespace spoor::tracker
