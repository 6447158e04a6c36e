#pragma once

#include <cassert>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tracker/filter/hash.h"
#include "tracker/filter/packed_bits.h"

namespace spoor::tracker {

// The size of a filter: m bits, k positions a key. Filters of different shapes can't be merged.
struct BloomShape {
  std::uint64_t bits = 0;
  std::uint64_t hashes = 0;

  static constexpr std::uint64_t bits_max = std::uint64_t{1} << 36U;
  static constexpr std::uint64_t hashes_max = 64;

  // m = ceil(-n ln p / (ln 2)^2), k = ceil(m/n ln 2) (Bloom 1970); n >= 1, 0 < p < 1.
  static BloomShape for_items(std::uint64_t items, double fp_rate);

  // Checks a shape from a file or a peer. Fails with Errc::invalid_shape if it is 0 or over the bounds.
  static base::Result<BloomShape> checked(std::uint64_t bits, std::uint64_t hashes);

  std::uint64_t word_count() const { return (bits + 63) / 64; }
  std::uint64_t byte_count() const { return word_count() * 8; }

  friend auto operator<=>(const BloomShape&, const BloomShape&) = default;
};

// x mod d for a fixed d, by multiplications instead of a division (Granlund, Montgomery 1994).
// Exact for every x.
//
// Immutable; thread-safe.
class FastModulo {
 public:
  // 1 <= divisor <= 2^63.
  explicit FastModulo(std::uint64_t divisor)
      : divisor_(divisor), inverse_(std::numeric_limits<std::uint64_t>::max() / divisor) {}

  // Let 2^64 - 1 = c d + e, 0 <= e < d. Then c x / 2^64 = x / d - (x / 2^64) ((e + 1) / d). The subtrahend is
  // at least 0 and less than 1, since x < 2^64 and e + 1 <= d. Rounded down this is floor(x / d) or one less,
  // so that 0 <= rest < 2 d: one subtraction is enough. This holds for every d, also for 1 and for a power of
  // two, where 2^64 / d is a whole number and c is one less.
  std::uint64_t operator()(std::uint64_t x) const {
    const auto quotient = static_cast<std::uint64_t>(Wide{x} * inverse_ >> 64U);
    const std::uint64_t rest = x - quotient * divisor_;
    return rest >= divisor_ ? rest - divisor_ : rest;
  }

 private:
  __extension__ using Wide = unsigned __int128;

  std::uint64_t divisor_;
  std::uint64_t inverse_;
};

// The bit positions of a key in the filters of one shape (docs/formats.md, "Filter").
//
// Immutable; thread-safe.
class BloomPositions {
 public:
  explicit BloomPositions(BloomShape shape) : modulo_(shape.bits) {}

  // Position number i, below the shape's hashes: location() of bits-and-blooms v3 and its caller.
  std::uint64_t at(const PathHash& hash, std::uint64_t i) const {
    const std::uint64_t parity = i % 2;
    const std::uint64_t step = hash.words[2 + ((i + parity) % 4) / 2];
    return modulo_(hash.words[parity] + i * step);
  }

  // Whether bit(position) is 1 for all `hashes` positions of a key.
  template <class Bit>
  bool all(const PathHash& hash, std::uint64_t hashes, Bit bit) const {
    if (hashes == 4) {  // the usual number: no branch for each bit, which the processor can't predict
      return (bit(at(hash, 0)) & bit(at(hash, 1)) & bit(at(hash, 2)) & bit(at(hash, 3))) != 0;
    }
    for (std::uint64_t i = 0; i < hashes; ++i) {
      if (bit(at(hash, i)) == 0) return false;
    }
    return true;
  }

 private:
  FastModulo modulo_;
};

// A set of paths with false positives and without false negatives. Bit-compatible with
// bits-and-blooms/bloom v3 (docs/formats.md).
//
// Either dense (words, which can be added to), or packed, which takes far less memory for a sparse filter.
// Both return the same results; a lookup in a packed filter takes about a microsecond.
//
// Not thread-safe.
class BloomFilter {
 public:
  explicit BloomFilter(BloomShape shape) : shape_(shape), positions_(shape), words_(shape.word_count()) {}

  // From the words of a file or frame: exactly shape.word_count() of them. Bits beyond the shape's last bit
  // are cleared.
  BloomFilter(BloomShape shape, std::vector<std::uint64_t> words);

  // Packed. Every position must be below shape.bits.
  BloomFilter(BloomShape shape, PackedBits bits)
      : shape_(shape), positions_(shape), packed_(std::move(bits)) {}

  // Returns whether any bit was new. add() and merge() make a packed filter dense: it then takes
  // shape().byte_count() bytes.
  bool add(const PathHash& hash);
  bool may_contain(const PathHash& hash) const {
    if (packed_) return packed_may_contain(hash);
    return positions_.all(hash, shape_.hashes,
                          [this](std::uint64_t at) { return words_[at / 64] >> (at % 64) & 1U; });
  }

  // Unpacks the filter if it is packed.
  void make_dense();

  // Adds everything in `other`, which must be of the same shape.
  void merge(const BloomFilter& other);

  BloomShape shape() const { return shape_; }
  std::uint64_t bits_set() const;

  // The same filter, packed if that takes less than 7/8 of the memory of the dense form; otherwise a copy.
  BloomFilter packed() const;
  bool is_packed() const { return packed_.has_value(); }

  // The filter must be dense.
  std::span<const std::uint64_t> words() const {
    assert(!is_packed());
    return words_;
  }

  // The filter must be packed.
  const PackedBits& packed_bits() const {
    assert(is_packed());
    return *packed_;
  }

  // Heap memory.
  std::uint64_t memory_bytes() const;

 private:
  bool packed_may_contain(const PathHash& hash) const;

  BloomShape shape_;
  BloomPositions positions_;
  std::vector<std::uint64_t> words_;  // none if packed
  std::optional<PackedBits> packed_;
};

// Estimates from the number of bits set.
struct FilterFigures {
  double items = 0;    // estimated number of distinct keys: -m/k ln(1 - X/m); X = m counts as m - 1/2
  double density = 0;  // share of bits set, 0..1; about 0.5 when it holds the items it is sized for
  double fp_rate = 0;  // estimated probability of a false positive: density^k

  static FilterFigures of(BloomShape shape, std::uint64_t bits_set);
  static FilterFigures of(const BloomFilter& filter) { return of(filter.shape(), filter.bits_set()); }
};

}  // namespace spoor::tracker
