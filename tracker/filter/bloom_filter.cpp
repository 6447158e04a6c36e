#include "tracker/filter/bloom_filter.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

// Both are of one size. The words of many filters come from memory, not from a cache: later ones are
// prefetched, since the processor's own prefetching starts anew at each page.
void merge_words(std::span<std::uint64_t> into, std::span<const std::uint64_t> from) {
  constexpr std::size_t block = 256;
  constexpr std::size_t ahead = 4 * block;
  constexpr std::size_t line = 64 / sizeof(std::uint64_t);
  for (std::size_t begin = 0; begin < from.size(); begin += block) {
    const std::size_t end = std::min(begin + block, from.size());
    const std::size_t ahead_end = std::min(end + ahead, from.size());
    for (std::size_t at = begin + ahead; at < ahead_end; at += line) __builtin_prefetch(&from[at]);
    for (std::size_t at = begin; at < end; ++at) into[at] |= from[at];
  }
}

}  // namespace

BloomShape BloomShape::for_items(std::uint64_t items, double fp_rate) {
  constexpr double ln2 = std::numbers::ln2;
  const double n = static_cast<double>(items);
  const double bits = std::ceil(-n * std::log(fp_rate) / (ln2 * ln2));
  const double hashes = std::ceil(ln2 * bits / n);
  // The clamps apply only to p close to 0 or 1.
  return {static_cast<std::uint64_t>(std::clamp(bits, 1.0, static_cast<double>(bits_max))),
          static_cast<std::uint64_t>(std::clamp(hashes, 1.0, static_cast<double>(hashes_max)))};
}

base::Result<BloomShape> BloomShape::checked(std::uint64_t bits, std::uint64_t hashes) {
  if (bits == 0 || bits > bits_max || hashes == 0 || hashes > hashes_max) {
    return base::Error(Errc::invalid_shape,
                       fmt::format("a filter of {} bits and {} hashes is impossible", bits, hashes));
  }
  return BloomShape{bits, hashes};
}

BloomFilter::BloomFilter(BloomShape shape, std::vector<std::uint64_t> words)
    : shape_(shape), positions_(shape), words_(std::move(words)) {
  words_.resize(shape_.word_count());
  const std::uint64_t used = shape_.bits % 64;
  if (used != 0) words_.back() &= (std::uint64_t{1} << used) - 1;
}

bool BloomFilter::add(const PathHash& hash) {
  make_dense();
  bool is_new = false;
  for (std::uint64_t i = 0; i < shape_.hashes; ++i) {
    const std::uint64_t bit = positions_.at(hash, i);
    const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
    std::uint64_t& word = words_[bit / 64];
    is_new = is_new || (word & mask) == 0;
    word |= mask;
  }
  return is_new;
}

bool BloomFilter::packed_may_contain(const PathHash& hash) const {
  for (std::uint64_t i = 0; i < shape_.hashes; ++i) {
    if (!packed_->test(positions_.at(hash, i))) return false;
  }
  return true;
}

void BloomFilter::merge(const BloomFilter& other) {
  make_dense();
  if (other.packed_) {
    other.packed_->unpack_into(words_);
    return;
  }
  merge_words(words_, other.words_);
}

void BloomFilter::make_dense() {
  if (!packed_) return;
  words_.resize(shape_.word_count());
  packed_->unpack_into(words_);
  packed_.reset();
}

BloomFilter BloomFilter::packed() const {
  if (packed_) return *this;
  const std::uint64_t bytes_max = shape_.byte_count() / 8 * 7;
  auto bits = PackedBits::pack(words_, bytes_max);
  if (!bits || bits->memory_bytes() >= bytes_max) return *this;
  return {shape_, *std::move(bits)};
}

std::uint64_t BloomFilter::bits_set() const { return packed_ ? packed_->count() : count_bits(words_); }

std::uint64_t BloomFilter::memory_bytes() const {
  return packed_ ? packed_->memory_bytes() : words_.capacity() * sizeof(std::uint64_t);
}

FilterFigures FilterFigures::of(BloomShape shape, std::uint64_t bits_set) {
  const double bits = static_cast<double>(shape.bits);
  const double hashes = static_cast<double>(shape.hashes);
  const double set = static_cast<double>(bits_set);
  FilterFigures figures;
  figures.density = set / bits;
  // A full filter could hold any number of items: it counts as half a bit less than full.
  figures.items = -bits / hashes * std::log1p(-std::min(set, bits - 0.5) / bits);
  figures.fp_rate = std::pow(figures.density, hashes);
  return figures;
}

}  // namespace spoor::tracker
