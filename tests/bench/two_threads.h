#pragma once

#include <atomic>
#include <cstddef>
#include <future>

namespace spoor::bench {

// work(0) .. work(count - 1), shared out between two threads. Throws what one of them threw.
template <class Work>
void by_two_threads(std::size_t count, const Work& work) {
  std::atomic<std::size_t> next = 0;
  const auto acquire_all = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  auto other = std::async(std::launch::async, acquire_all);
  acquire_all();
  other.get();
}

}  // namespace spoor::bench
