// The hash of a path and of every prefix of it, in one pass (docs/formats.md, "Hash").
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tracker/filter/murmur3.h"
#include "tracker/paths/byte_scan.h"

namespace spoor::tracker {

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
