#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "tracker/fast_modulo.h"
#include "tracker/hash.h"

namespace spoor::tracker {

// The size of a filter: m bits, k positions a key. Filters of different shapes can't be merged.
struct BloomShape {
  std::uint64_t bits = 0;
  std::uint64_t hashes = 0;

  static constexpr std::uint64_t bits_max = std::uint64_t{1} << 36U;
  static constexpr std::uint64_t hashes_max = 64;

  // m = ceil(-n ln p / (ln 2)^2), k = ceil(m/n ln 2) (Bloom 1970); n >= 1, 0 < p < 1.
  static BloomShape for_items(std::uint64_t items, double fp_rate);

  // A shape read from outside. Fails with Errc::invalid_shape where no filter can have it.
  static base::Result<BloomShape> checked(std::uint64_t bits, std::uint64_t hashes);

  std::uint64_t word_count() const { return (bits + 63) / 64; }
  std::uint64_t byte_count() const { return word_count() * 8; }

  friend auto operator<=>(const BloomShape&, const BloomShape&) = default;
};

// Which bits a key has in a filter: those of bits-and-blooms v3 (location() and its caller).
class BloomPositions {
 public:
  explicit BloomPositions(BloomShape shape) : hashes_(shape.hashes), modulo_(shape.bits) {}

  std::uint64_t hashes() const { return hashes_; }

  // 0 <= i < hashes().
  std::uint64_t at(const PathHash& hash, std::uint64_t i) const {
    const std::uint64_t parity = i % 2;
    return modulo_(hash.words[parity] + i * hash.words[2 + ((i + parity) % 4) / 2]);
  }

 private:
  std::uint64_t hashes_;
  FastModulo modulo_;
};

// A set of paths. Says "maybe" for some paths never added, and never "no" for a path that was.
// Bit for bit the filter of bits-and-blooms/bloom v3 (docs/formats.md).
//
// Not thread-safe.
class BloomFilter {
 public:
  explicit BloomFilter(BloomShape shape) : shape_(shape), words_(shape.word_count()) {}

  // The words of a filter read from outside: exactly shape.word_count() of them. Bits beyond the
  // shape's last are dropped.
  BloomFilter(BloomShape shape, std::vector<std::uint64_t> words);

  // Returns whether any bit was new.
  bool add(const PathHash& hash);
  bool may_contain(const PathHash& hash) const;

  // Adds everything in `other`, which must be of the same shape.
  void merge(const BloomFilter& other);

  BloomShape shape() const { return shape_; }
  std::span<const std::uint64_t> words() const { return words_; }

  std::uint64_t bits_set() const;

 private:
  BloomShape shape_;
  std::vector<std::uint64_t> words_;
};

// What the number of bits set tells of a filter.
struct FilterFigures {
  double items = 0;    // estimated number of distinct keys: -m/k ln(1 - X/m); m where X = m
  double density = 0;  // share of bits set, 0..1; about 0.5 when it holds what it was made for
  double fp_rate = 0;  // estimated chance that a key never added answers "maybe": density^k

  static FilterFigures of(BloomShape shape, std::uint64_t bits_set);
  static FilterFigures of(const BloomFilter& filter) { return of(filter.shape(), filter.bits_set()); }
};

}  // namespace spoor::tracker
