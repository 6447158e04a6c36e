#pragma once

#include <cstdint>

namespace spoor::tracker {

// x mod d for one d and many x, without a division.
class FastModulo {
 public:
  // 1 <= divisor <= 2^63.
  explicit FastModulo(std::uint64_t divisor)
      : divisor_(divisor), inverse_(divisor == 1 ? ~std::uint64_t{0} : static_cast<std::uint64_t>((Wide{1} << 64U) / divisor)) {}

  std::uint64_t operator()(std::uint64_t x) const {
    const auto quotient = static_cast<std::uint64_t>((Wide{x} * inverse_) >> 64U);
    const std::uint64_t rest = x - quotient * divisor_;
    return rest >= divisor_ ? rest - divisor_ : rest;
  }

 private:
  __extension__ using Wide = unsigned __int128;

  std::uint64_t divisor_;
  std::uint64_t inverse_;
};

}  // namespace spoor::tracker
