#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace spoor::tracker {

// The set bits of a sparse filter: the gaps between them, Golomb-Rice coded (Golomb 1966, Rice 1979;
// compressed Bloom filters: Mitzenmacher 2001). Within 4 % of what can be at all where the bits are
// random, as a filter's are. Bit for bit in docs/formats.md, "Packed bits".
//
// Immutable; thread-safe.
class PackedBits {
 public:
  // Nothing where the packed form is not shorter than `bytes_max`, or would not be if the bits were random:
  // what can be told by their number is not tried.
  static std::optional<PackedBits> pack(std::span<const std::uint64_t> words, std::uint64_t bytes_max);

  // Takes a packed form from outside. Fails with Errc::invalid_shape, saying what is wrong, where it is
  // not exactly one of positions below `bits`; allocates in proportion to the bytes given, whatever they say.
  static base::Result<PackedBits> parse(std::string_view bytes, std::uint64_t bits);

  // Decodes a few hundred positions at most.
  bool test(std::uint64_t position) const;

  // ORs the bits into the words of a filter, which must be long enough.
  void unpack_into(std::span<std::uint64_t> words) const;

  // How many bits are set.
  std::uint64_t count() const { return count_; }

  // As in a file or frame: what parse() takes.
  std::string_view bytes() const { return {bytes_.data(), bytes_.size() - padding_bytes}; }

  std::uint64_t memory_bytes() const { return bytes_.capacity() + index_.capacity() * sizeof(Entry); }

 private:
  // Zeros behind the bytes: eight can be read from any place without asking how many are left.
  static constexpr std::size_t padding_bytes = 8;
  static constexpr std::uint64_t positions_per_entry = 256;

  // Where to begin to decode: the positions from here on come from the stream's bits from there on.
  struct Entry {
    std::uint64_t after = 0;  // the position decoded last before it, plus one; 0 at the start
    std::uint64_t at_bit = 0;
  };

  PackedBits(std::string_view bytes, std::uint64_t count);

  std::string bytes_;
  std::uint64_t count_ = 0;
  std::vector<Entry> index_;  // of every 256th position, the first one included
};

}  // namespace spoor::tracker
