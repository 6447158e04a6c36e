#include "tests/support/largest_allocation.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace spoor::support {
namespace {

std::atomic<std::size_t> largest{0};
std::atomic<std::size_t> count{0};

void* allocate(std::size_t bytes) noexcept {
  ++count;
  std::size_t known = largest;
  while (known < bytes && !largest.compare_exchange_weak(known, bytes)) {
  }
  return std::malloc(bytes == 0 ? 1 : bytes);
}

}  // namespace

void reset_largest_allocation() { largest = 0; }

std::size_t largest_allocation_bytes() { return largest; }

std::size_t allocation_count() { return count; }

}  // namespace spoor::support

void* operator new(std::size_t bytes) {
  if (void* memory = spoor::support::allocate(bytes)) return memory;
  throw std::bad_alloc();
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return spoor::support::allocate(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
