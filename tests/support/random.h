// Reproducible randomness for tests: one seed decides everything. It is printed with every failure (and at
// the start, for runs that crash), and can be set in the environment:
//
//   SPOOR_SEED=1234 build/release/tests/tracker_test --gtest_filter=...
//
//   TEST(X, Y) {
//     SPOOR_RANDOM(random);
//     ... random.below(10) ...
//   }
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace spoor::support {

// Not thread-safe: give each thread a fork().
class Random {
 public:
  Random() : Random(chosen_seed()) { std::cout << "[ SEED     ] " << trace() << std::endl; }
  explicit Random(std::uint64_t seed) : seed_(seed), engine_(seed) {}

  std::string trace() const { return "SPOOR_SEED=" + std::to_string(seed_); }

  std::uint64_t next() { return engine_(); }

  // 0 <= number < bound. The slight bias of the modulo does not matter to tests.
  std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  char byte() { return static_cast<char>(below(256)); }

  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

  std::string bytes(std::size_t count) {
    std::string text;
    while (text.size() < count) text += byte();
    return text;
  }

  std::string letters(std::size_t count, char last = 'z') {
    std::string text;
    while (text.size() < count)
      text += static_cast<char>('a' + static_cast<char>(below(static_cast<std::uint64_t>(last - 'a' + 1))));
    return text;
  }

  // A generator that is independent of this one and determined by the same seed.
  Random fork() { return Random(next()); }

 private:
  static std::uint64_t chosen_seed() {
    if (const char* given = std::getenv("SPOOR_SEED")) return std::strtoull(given, nullptr, 10);
    return std::random_device{}();
  }

  std::uint64_t seed_;
  std::mt19937_64 engine_;
};

}  // namespace spoor::support

#define SPOOR_RANDOM(name)       \
  ::spoor::support::Random name; \
  SCOPED_TRACE(name.trace())
