#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "tracker/bloom_filter.h"
#include "tracker/processor.h"

namespace spoor::tracker {

// A filter that takes marks: the bits of a BloomFilter, added to and read by any number of threads at once.
//
// Thread-safe. Who sees a bit also sees what was written before the thread that set it called add().
class LiveFilter {
 public:
  // Throws std::bad_alloc. Takes no memory before it is written to.
  explicit LiveFilter(BloomShape shape);
  explicit LiveFilter(const BloomFilter& filter);

  bool may_contain(const PathHash& hash) const {
    return positions_.all(hash, shape_.hashes, [this](std::uint64_t at) { return bit(at); });
  }

  // How many of the first of them it may contain, up to the first that it does not. `wide` only where
  // has_avx512().
  std::size_t may_contain_first(std::span<const PathHash> hashes, bool wide = has_avx512()) const;

  // Begins to fetch what add() of this hash will write to, or else what may_contain() is likely to read.
  void prefetch(const PathHash& hash, bool for_add) const {
    constexpr std::uint64_t likely = 2;  // in a filter that is half full, few lookups get further
    const std::uint64_t count = for_add ? shape_.hashes : std::min(likely, shape_.hashes);
    for (std::uint64_t i = 0; i < count; ++i) __builtin_prefetch(&words_.get()[positions_.at(hash, i) / 64]);
  }

  // Returns how many bits were new. The caller counts them with count_bits(), many at a time: a counter that
  // all marks wrote to would pass from one processor to the other for each of them.
  std::uint64_t add(const PathHash& hash) {
    constexpr std::uint64_t at_a_time = 8;
    std::uint64_t added = 0;
    // Writing to one word waits for the one before: all are fetched before the first is written to.
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

  // Holds at least what was added before the call.
  BloomFilter copy() const;

 private:
  struct Free {
    void operator()(std::uint64_t* words) const { std::free(words); }
  };

  std::size_t may_contain_first_wide(std::span<const PathHash> hashes) const;

  std::atomic_ref<std::uint64_t> word(std::uint64_t bit) const {
    return std::atomic_ref<std::uint64_t>(words_.get()[bit / 64]);
  }

  // Returns 1 where it was not set. Looks first: writing takes the word from all others who read it.
  std::uint64_t set(std::uint64_t at) {
    const std::uint64_t mask = std::uint64_t{1} << (at % 64);
    if ((word(at).load(std::memory_order_relaxed) & mask) != 0) return 0;
    return (word(at).fetch_or(mask, std::memory_order_release) & mask) == 0 ? 1 : 0;
  }

  // 1 where it is set.
  std::uint64_t bit(std::uint64_t at) const {
    return word(at).load(std::memory_order_acquire) >> (at % 64) & 1U;
  }

  BloomShape shape_;
  BloomPositions positions_;
  double inverse_;  // a bit less than 1 / shape_.bits
  std::unique_ptr<std::uint64_t[], Free> words_;
  std::atomic<std::uint64_t> bits_set_ = 0;
};

}  // namespace spoor::tracker
