#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

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

// The set bits of a sparse filter: the gaps between them, Golomb-Rice coded (Golomb 1966, Rice 1979;
// compressed Bloom filters: Mitzenmacher 2001). Within 4 % of the optimum for random bits, as a filter has.
// The format is in docs/formats.md, "Packed bits".
//
// Immutable; thread-safe.
class PackedBits {
 public:
  // Returns nullopt if the packed form is not shorter than `bytes_max`, or if the number of bits shows in
  // advance that random bits would not be.
  static std::optional<PackedBits> pack(std::span<const std::uint64_t> words, std::uint64_t bytes_max);

  // Reads a packed form from a file or frame. Fails with Errc::invalid_shape and the reason if it is not a
  // valid form of positions below `bits`. The memory is proportional to the size of `bytes`.
  static base::Result<PackedBits> parse(std::string_view bytes, std::uint64_t bits);

  // Decodes a few hundred positions at most.
  bool test(std::uint64_t position) const;

  // ORs the bits into the words of a filter. `words` must be long enough.
  void unpack_into(std::span<std::uint64_t> words) const;

  // The number of bits set.
  std::uint64_t count() const { return count_; }

  // The form in a file or frame: the input of parse().
  std::string_view bytes() const { return {bytes_.data(), bytes_.size() - padding_bytes}; }

  std::uint64_t memory_bytes() const { return bytes_.capacity() + index_.capacity() * sizeof(Entry); }

 private:
  // Zeros after the bytes, so that eight bytes can be read at any offset without a check.
  static constexpr std::size_t padding_bytes = 8;
  static constexpr std::uint64_t positions_per_entry = 256;

  // A point where decoding can begin.
  struct Entry {
    std::uint64_t after = 0;  // the previous position plus one; 0 at the start
    std::uint64_t at_bit = 0;
  };

  PackedBits(std::string_view bytes, std::uint64_t count);

  std::string bytes_;
  std::uint64_t count_ = 0;
  std::vector<Entry> index_;  // one for every 256th position, beginning with the first
};

}  // namespace spoor::tracker
