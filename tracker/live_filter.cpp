#include "tracker/live_filter.h"

#include <algorithm>
#include <new>
#include <vector>

namespace spoor::tracker {

// calloc leaves large memory to the kernel until it is touched; a vector would write zeros to all of it.
LiveFilter::LiveFilter(BloomShape shape)
    : shape_(shape),
      positions_(shape),
      words_(static_cast<std::uint64_t*>(std::calloc(shape.word_count(), sizeof(std::uint64_t)))) {
  if (words_ == nullptr) throw std::bad_alloc();
}

LiveFilter::LiveFilter(const BloomFilter& filter) : LiveFilter(filter.shape()) {
  BloomFilter dense(filter.shape());
  dense.merge(filter);
  std::copy(dense.words().begin(), dense.words().end(), words_.get());
  bits_set_ = dense.bits_set();
}

BloomFilter LiveFilter::copy() const {
  std::vector<std::uint64_t> words(shape_.word_count());
  for (std::size_t at = 0; at < words.size(); ++at) {
    words[at] = std::atomic_ref<std::uint64_t>(words_.get()[at]).load(std::memory_order_relaxed);
  }
  return {shape_, std::move(words)};
}

}  // namespace spoor::tracker
