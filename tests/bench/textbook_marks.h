#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "tracker/filter/bloom_filter.h"
#include "tracker/filter/hash.h"

namespace spoor::bench {

// Marks as a textbook makes them, in the same filter: each prefix is hashed from its start, a position is a
// remainder, each bit is set by an atomic OR, and a mutex keeps markers apart.
class TextbookMarks {
 public:
  explicit TextbookMarks(tracker::BloomShape shape) : shape_(shape), words_(shape.word_count()) {}

  // Returns whether any bit was new. Thread-safe.
  bool mark(std::string_view path) {
    const std::scoped_lock lock(mutex_);
    bool is_new = false;
    for (std::size_t end = path.find('/');; end = path.find('/', end + 1)) {
      is_new = add(tracker::hash_path(path.substr(0, end))) || is_new;
      if (end == std::string_view::npos) return is_new;
    }
  }

  void clear() {
    const std::scoped_lock lock(mutex_);
    for (auto& word : words_) word = 0;
  }

 private:
  bool add(const tracker::PathHash& hash) {
    bool is_new = false;
    for (std::uint64_t i = 0; i < shape_.hashes; ++i) {
      const std::uint64_t step = hash.words[2 + ((i + i % 2) % 4) / 2];
      const std::uint64_t at = (hash.words[i % 2] + i * step) % shape_.bits;
      const std::uint64_t bit = std::uint64_t{1} << (at % 64);
      is_new = (words_[at / 64].fetch_or(bit) & bit) == 0 || is_new;
    }
    return is_new;
  }

  const tracker::BloomShape shape_;
  std::mutex mutex_;
  std::vector<std::atomic<std::uint64_t>> words_;
};

}  // namespace spoor::bench
