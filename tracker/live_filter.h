#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "tracker/bloom_filter.h"

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
    bool all = true;
    for (std::uint64_t i = 0; i < shape_.hashes; ++i) {
      const std::uint64_t bit = positions_.at(hash, i);
      all = all && (word(bit).load(std::memory_order_acquire) >> (bit % 64) & 1U) != 0;
    }
    return all;
  }

  // Returns how many bits were new. The caller counts them with count_bits(), many at a time: a counter that
  // all marks wrote to would pass from one processor to the other for each of them.
  std::uint64_t add(const PathHash& hash) {
    std::uint64_t added = 0;
    for (std::uint64_t i = 0; i < shape_.hashes; ++i) {
      const std::uint64_t bit = positions_.at(hash, i);
      const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
      if ((word(bit).load(std::memory_order_relaxed) & mask) != 0) continue;
      if ((word(bit).fetch_or(mask, std::memory_order_release) & mask) == 0) ++added;
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

  std::atomic_ref<std::uint64_t> word(std::uint64_t bit) const {
    return std::atomic_ref<std::uint64_t>(words_.get()[bit / 64]);
  }

  BloomShape shape_;
  BloomPositions positions_;
  std::unique_ptr<std::uint64_t[], Free> words_;
  std::atomic<std::uint64_t> bits_set_ = 0;
};

}  // namespace spoor::tracker
