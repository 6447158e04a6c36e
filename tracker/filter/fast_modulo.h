#pragma once

#include <cstdint>
#include <limits>

namespace spoor::tracker {

// x mod d for a fixed d, by multiplications instead of a division (Granlund, Montgomery 1994).
// Exact for every x.
//
// Immutable; thread-safe.
class FastModulo {
 public:
  // 1 <= divisor <= 2^63.
  explicit FastModulo(std::uint64_t divisor)
      : divisor_(divisor), inverse_(std::numeric_limits<std::uint64_t>::max() / divisor) {}

  // Let 2^64 - 1 = c d + e, 0 <= e < d. Then c x / 2^64 = x / d - (x / 2^64) ((e + 1) / d). The subtrahend is
  // at least 0 and less than 1, since x < 2^64 and e + 1 <= d. Rounded down this is floor(x / d) or one less,
  // so that 0 <= rest < 2 d: one subtraction is enough. This holds for every d, also for 1 and for a power of
  // two, where 2^64 / d is a whole number and c is one less.
  std::uint64_t operator()(std::uint64_t x) const {
    const auto quotient = static_cast<std::uint64_t>(Wide{x} * inverse_ >> 64U);
    const std::uint64_t rest = x - quotient * divisor_;
    return rest >= divisor_ ? rest - divisor_ : rest;
  }

 private:
  __extension__ using Wide = unsigned __int128;

  std::uint64_t divisor_;
  std::uint64_t inverse_;
};

}  // namespace spoor::tracker
