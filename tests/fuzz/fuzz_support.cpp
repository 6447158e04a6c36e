#include "tests/fuzz/fuzz_support.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <limits>

// Of the address sanitizer (sanitizer/allocator_interface.h); none without it.
extern "C" __attribute__((weak)) int __sanitizer_install_malloc_and_free_hooks(
    void (*malloc_hook)(const volatile void*, std::size_t), void (*free_hook)(const volatile void*));

namespace spoor::fuzz {
namespace {

constexpr std::size_t multiple = 8;
constexpr std::size_t extra_bytes = std::size_t{64} << 10U;  // tables of a fixed size
constexpr std::size_t no_bound = std::numeric_limits<std::size_t>::max();

std::atomic<std::size_t> bound{no_bound};

void seen_malloc(const volatile void*, std::size_t bytes) {
  if (bytes <= bound) return;
  bound = no_bound;  // the report takes memory as well
  std::fprintf(stderr, "%zu bytes were asked for in one piece\n", bytes);
  require(false, "no length is believed before its bytes are there");
}

void seen_free(const volatile void*) {}

}  // namespace

void require(bool holds, const char* rule) {
  if (holds) return;
  std::fprintf(stderr, "Broken rule: %s\n", rule);
  std::abort();
}

// By the sanitizer's hook: with the address sanitizer operator new is not ours to replace. A replay without
// the sanitizer checks all other rules.
MemoryBound::MemoryBound(std::size_t input_bytes) {
  if (__sanitizer_install_malloc_and_free_hooks == nullptr) return;
  static const bool is_seeing = __sanitizer_install_malloc_and_free_hooks(seen_malloc, seen_free) != 0;
  require(is_seeing, "allocations can be seen");
  bound = multiple * input_bytes + extra_bytes;
}

MemoryBound::~MemoryBound() { bound = no_bound; }

}  // namespace spoor::fuzz
