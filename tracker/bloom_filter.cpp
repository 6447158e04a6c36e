#include "tracker/bloom_filter.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

// Position i of bits-and-blooms v3: location() and its caller, modulo m.
std::uint64_t position(const PathHash& hash, std::uint64_t i, std::uint64_t bits) {
  const std::uint64_t parity = i % 2;
  const std::uint64_t step = hash.words[2 + ((i + parity) % 4) / 2];
  return (hash.words[parity] + i * step) % bits;
}

}  // namespace

BloomShape BloomShape::for_items(std::uint64_t items, double fp_rate) {
  constexpr double ln2 = std::numbers::ln2;
  const double n = static_cast<double>(items);
  const double bits = std::ceil(-n * std::log(fp_rate) / (ln2 * ln2));
  const double hashes = std::ceil(ln2 * bits / n);
  // The clamps only meet shapes nobody can want: p next to 0 or 1.
  return {static_cast<std::uint64_t>(std::clamp(bits, 1.0, static_cast<double>(bits_max))),
          static_cast<std::uint64_t>(std::clamp(hashes, 1.0, static_cast<double>(hashes_max)))};
}

base::Result<BloomShape> BloomShape::checked(std::uint64_t bits, std::uint64_t hashes) {
  if (bits == 0 || bits > bits_max || hashes == 0 || hashes > hashes_max) {
    return base::Error(Errc::invalid_shape,
                       fmt::format("a filter of {} bits and {} hashes can't be", bits, hashes));
  }
  return BloomShape{bits, hashes};
}

BloomFilter::BloomFilter(BloomShape shape, std::vector<std::uint64_t> words)
    : shape_(shape), words_(std::move(words)) {
  words_.resize(shape_.word_count());
  const std::uint64_t used = shape_.bits % 64;
  if (used != 0) words_.back() &= (std::uint64_t{1} << used) - 1;
}

bool BloomFilter::add(const PathHash& hash) {
  bool is_new = false;
  for (std::uint64_t i = 0; i < shape_.hashes; ++i) {
    const std::uint64_t bit = position(hash, i, shape_.bits);
    const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
    std::uint64_t& word = words_[bit / 64];
    is_new = is_new || (word & mask) == 0;
    word |= mask;
  }
  return is_new;
}

bool BloomFilter::may_contain(const PathHash& hash) const {
  for (std::uint64_t i = 0; i < shape_.hashes; ++i) {
    const std::uint64_t bit = position(hash, i, shape_.bits);
    if ((words_[bit / 64] >> (bit % 64) & 1U) == 0) return false;
  }
  return true;
}

void BloomFilter::merge(const BloomFilter& other) {
  for (std::size_t at = 0; at < words_.size(); ++at) words_[at] |= other.words_[at];
}

std::uint64_t BloomFilter::bits_set() const {
  return std::accumulate(words_.begin(), words_.end(), std::uint64_t{0},
                         [](std::uint64_t sum, std::uint64_t word) {
                           return sum + static_cast<std::uint64_t>(std::popcount(word));
                         });
}

FilterFigures FilterFigures::of(BloomShape shape, std::uint64_t bits_set) {
  const double bits = static_cast<double>(shape.bits);
  const double hashes = static_cast<double>(shape.hashes);
  const double set = static_cast<double>(bits_set);
  FilterFigures figures;
  figures.density = set / bits;
  figures.items = set < bits ? -bits / hashes * std::log1p(-figures.density) : bits;
  figures.fp_rate = std::pow(figures.density, hashes);
  return figures;
}

}  // namespace spoor::tracker
