#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "tracker/filter/bloom_filter.h"
#include "tracker/filter/hash.h"

namespace spoor::tracker {

// A filter for new marks: the bits of a BloomFilter, which any number of threads set and read concurrently.
//
// Thread-safe. A thread that reads a set bit also sees everything that the setting thread wrote before add().
class LiveFilter {
 public:
  // Throws std::bad_alloc. The memory of a large filter becomes resident only when it is written to.
  explicit LiveFilter(BloomShape shape);
  explicit LiveFilter(const BloomFilter& filter);

  bool may_contain(const PathHash& hash) const {
    return positions_.all(hash, shape_.hashes, [this](std::uint64_t at) { return bit(at); });
  }

  // The number of leading hashes that the filter may contain, up to the first that it does not contain.
  // `wide` requires has_avx512().
  std::size_t may_contain_first(std::span<const PathHash> hashes, bool wide = has_avx512()) const;

  // Prefetches the words that add() of this hash writes, or those that may_contain() is likely to read.
  void prefetch(const PathHash& hash, bool for_add) const {
    constexpr std::uint64_t likely = 2;  // in a filter that is half full, few lookups read more
    const std::uint64_t count = for_add ? shape_.hashes : std::min(likely, shape_.hashes);
    for (std::uint64_t i = 0; i < count; ++i) __builtin_prefetch(&words_.get()[positions_.at(hash, i) / 64]);
  }

  // Returns the number of new bits. The caller reports them with count_bits(), many at a time: with a shared
  // counter for every mark, processors would contend for its cache line.
  std::uint64_t add(const PathHash& hash) {
    constexpr std::uint64_t at_a_time = 8;
    std::uint64_t added = 0;
    // A write to a word waits for the previous one, so all words are prefetched before the first write.
    for (std::uint64_t first = 0; first < shape_.hashes; first += at_a_time) {
      std::array<std::uint64_t, at_a_time> positions{};
      const std::uint64_t count = std::min(at_a_time, shape_.hashes - first);
      for (std::uint64_t i = 0; i < count; ++i) {
        positions[i] = positions_.at(hash, first + i);
        constexpr int to_write = 1;
        __builtin_prefetch(&words_.get()[positions[i] / 64], to_write);
      }
      for (std::uint64_t i = 0; i < count; ++i) added += set(positions[i]);
    }
    return added;
  }

  void count_bits(std::uint64_t added) { bits_set_.fetch_add(added, std::memory_order_relaxed); }
  std::uint64_t bits_counted() const { return bits_set_.load(std::memory_order_relaxed); }

  BloomShape shape() const { return shape_; }

  // The copy holds at least all hashes added before the call.
  BloomFilter copy() const;

 private:
  struct Free {
    void operator()(std::uint64_t* words) const { std::free(words); }
  };

  std::size_t may_contain_first_wide(std::span<const PathHash> hashes) const;

  std::atomic_ref<std::uint64_t> word(std::uint64_t bit) const {
    return std::atomic_ref<std::uint64_t>(words_.get()[bit / 64]);
  }

  // Returns 1 if the bit was not set. Reads first: a write invalidates the cache line of all readers.
  std::uint64_t set(std::uint64_t at) {
    const std::uint64_t mask = std::uint64_t{1} << (at % 64);
    if ((word(at).load(std::memory_order_relaxed) & mask) != 0) return 0;
    return (word(at).fetch_or(mask, std::memory_order_release) & mask) == 0 ? 1 : 0;
  }

  std::uint64_t bit(std::uint64_t at) const {
    return word(at).load(std::memory_order_acquire) >> (at % 64) & 1U;
  }

  BloomShape shape_;
  BloomPositions positions_;
  double inverse_;  // slightly less than 1 / shape_.bits
  std::unique_ptr<std::uint64_t[], Free> words_;
  std::atomic<std::uint64_t> bits_set_ = 0;
};

}  // namespace spoor::tracker
