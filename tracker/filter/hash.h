// The hash of a path and of every prefix of it, in one pass (docs/formats.md, "Hash").
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <boost/endian/conversion.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tracker/paths/byte_scan.h"

namespace spoor::tracker {

// MurmurHash3 x64 128 (Appleby, seed 0), incremental: the state after whole blocks, and the final step for
// the rest of the key.
namespace murmur3 {

inline constexpr std::size_t block_bytes = 16;

// 16 bytes of a key; a shorter rest is padded with zeros.
struct Block {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  static Block load(const unsigned char* at) {
    return {boost::endian::load_little_u64(at), boost::endian::load_little_u64(at + 8)};
  }

  // The first `length` bytes, at most 15. Overlapping loads are faster than a copy whose length the compiler
  // does not know.
  static Block load_part(const unsigned char* at, std::size_t length) {
    using namespace boost::endian;
    Block block;
    if (length >= 8) {
      block.low = load_little_u64(at);
      // The last 8 bytes without those that are in `low`. Two shifts, since a length of 8 needs a shift by
      // 64.
      block.high = load_little_u64(at + length - 8) >> 8U >> (8 * (15 - length));
    } else if (length >= 4) {
      block.low = load_little_u32(at) | std::uint64_t{load_little_u32(at + length - 4)} << (8 * (length - 4));
    } else if (length != 0) {
      const std::size_t middle = length / 2;
      block.low = std::uint64_t{at[0]} | std::uint64_t{at[middle]} << (8 * middle) |
                  std::uint64_t{at[length - 1]} << (8 * (length - 1));
    }
    return block;
  }
};

// For each length up to 15: a mask of a block's first bytes, and a byte 0x01 after them.
struct Tails {
  std::array<Block, block_bytes> masks{};
  std::array<Block, block_bytes> ones{};

  constexpr Tails() {
    for (std::size_t length = 0; length < block_bytes; ++length) {
      for (std::size_t byte = 0; byte < length; ++byte) {
        (byte < 8 ? masks[length].low : masks[length].high) |= std::uint64_t{0xff} << (byte % 8 * 8);
      }
      (length < 8 ? ones[length].low : ones[length].high) = std::uint64_t{1} << (length % 8 * 8);
    }
  }
};

inline constexpr Tails tails;

// The block's first `length` bytes, at most 15, padded with zeros.
inline Block cut(Block block, std::size_t length) {
  return {block.low & tails.masks[length].low, block.high & tails.masks[length].high};
}

// A block cut at `length`, followed by one byte 0x01.
inline Block with_one(Block block, std::size_t length) {
  return {block.low | tails.ones[length].low, block.high | tails.ones[length].high};
}

struct Pair {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

// The hash state after the whole blocks of a key.
class State {
 public:
  static constexpr std::uint64_t c1 = 0x87c37b91114253d5U;
  static constexpr std::uint64_t c2 = 0x4cf5ad432745937fU;
  static constexpr std::array<std::uint64_t, 2> final_factors{0xff51afd7ed558ccdU, 0xc4ceb9fe1a85ec53U};

  void mix(Block block) {
    h1_ ^= mix_low(block.low);
    h1_ = (std::rotl(h1_, 27) + h2_) * 5 + 0x52dce729U;
    h2_ ^= mix_high(block.high);
    h2_ = (std::rotl(h2_, 31) + h1_) * 5 + 0x38495ab5U;
  }

  // The hash of a key of `length` bytes whose last length % 16 bytes are in `tail`. An empty tail mixes to
  // zero, which is the same as Appleby's code, which skips it.
  Pair finish(Block tail, std::uint64_t length) const {
    std::uint64_t h1 = h1_ ^ mix_low(tail.low) ^ length;
    std::uint64_t h2 = h2_ ^ mix_high(tail.high) ^ length;
    h1 += h2;
    h2 += h1;
    h1 = final_mix(h1);
    h2 = final_mix(h2);
    h1 += h2;
    h2 += h1;
    return {h1, h2};
  }

 private:
  static std::uint64_t mix_low(std::uint64_t k) { return std::rotl(k * c1, 31) * c2; }
  static std::uint64_t mix_high(std::uint64_t k) { return std::rotl(k * c2, 33) * c1; }

  static std::uint64_t final_mix(std::uint64_t k) {
    for (const std::uint64_t factor : final_factors) k = (k ^ (k >> 33U)) * factor;
    return k ^ (k >> 33U);
  }

  std::uint64_t h1_ = 0;
  std::uint64_t h2_ = 0;
};

}  // namespace murmur3

// The four words from which a filter computes its positions: MurmurHash3 x64 128 (Appleby, seed 0) of the
// key, and of the key followed by a byte 0x01.
struct PathHash {
  std::array<std::uint64_t, 4> words;

  friend bool operator==(const PathHash&, const PathHash&) = default;
};

// The hash of a key: its whole blocks are mixed into `state`, its last `held` bytes, at most 15, are the
// first bytes of `block`.
inline PathHash finish_hash(const murmur3::State& state, murmur3::Block block, std::size_t held,
                            std::uint64_t length) {
  const auto tail = cut(block, held);
  const auto padded = with_one(tail, held);
  const auto plain = state.finish(tail, length);
  // The key followed by 0x01 has the same whole blocks; the byte may complete one more.
  murmur3::Pair twin;
  if (held + 1 == murmur3::block_bytes) {
    murmur3::State behind = state;
    behind.mix(padded);
    twin = behind.finish({}, length + 1);
  } else {
    twin = state.finish(padded, length + 1);
  }
  return {{plain.first, plain.second, twin.first, twin.second}};
}

// Hashes a path incrementally: appended bytes are not read again, so the hash of a child reads only its name.
// Copy the hasher to descend.
//
// Not thread-safe.
class PathHasher {
 public:
  void append(std::string_view bytes);

  // Appends a separator, unless the path is empty, and the child's name.
  void descend(std::string_view name);

  // The hash of all bytes appended so far. More can be appended afterwards.
  PathHash hash() const {
    return finish_hash(state_, murmur3::Block::load(tail_.data()), length_ % murmur3::block_bytes, length_);
  }

 private:
  murmur3::State state_;
  std::uint64_t length_ = 0;
  std::array<unsigned char, murmur3::block_bytes> tail_{};  // the first length_ % 16 bytes are valid
};

PathHash hash_path(std::string_view path);

// Calls visit(PathHash, is_last) for every prefix of a normalised path, shortest first, the path itself
// last. Searches 64 bytes at a time for separators.
template <class Visit>
void for_each_prefix_hash(std::string_view path, Visit&& visit) {
  constexpr std::size_t blocks = separators_bytes / murmur3::block_bytes;
  if (path.empty()) return;
  murmur3::State state;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(path.data());
  for (std::size_t begin = 0;; begin += separators_bytes) {
    const std::size_t size = std::min(path.size() - begin, separators_bytes);
    // The states before each block of these bytes, and the blocks.
    std::array<murmur3::State, blocks> before;
    std::array<murmur3::Block, blocks> block;
    const std::size_t whole = size / murmur3::block_bytes;
    for (std::size_t i = 0; i < whole; ++i) {
      before[i] = state;
      block[i] = murmur3::Block::load(bytes + begin + i * murmur3::block_bytes);
      state.mix(block[i]);
    }
    if (whole < blocks) {
      before[whole] = state;
      const std::size_t at = begin + whole * murmur3::block_bytes;
      block[whole] = murmur3::Block::load_part(bytes + at, path.size() - at);
    }
    const auto visit_prefix = [&](std::size_t end, bool is_last) {
      const std::size_t in = end / murmur3::block_bytes;
      visit(finish_hash(before[in], block[in], end % murmur3::block_bytes, begin + end), is_last);
    };
    for (std::uint64_t ends = separators_in(path.substr(begin, size)); ends != 0; ends &= ends - 1) {
      visit_prefix(static_cast<std::size_t>(std::countr_zero(ends)), false);
    }
    if (size < separators_bytes) return visit_prefix(size, true);
  }
}

}  // namespace spoor::tracker
