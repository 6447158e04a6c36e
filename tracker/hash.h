// The hash of a path and of every prefix of it, in one pass (docs/formats.md, "Hash").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tracker/path.h"

namespace spoor::tracker {

// The four words from which a filter takes its positions: MurmurHash3 x64 128 (Appleby, seed 0) of
// the key, and of the key with a byte 0x01 behind it.
struct PathHash {
  std::array<std::uint64_t, 4> words{};

  friend bool operator==(const PathHash&, const PathHash&) = default;
};

// Hashes a path as it grows: what was appended is never read again, so the hashes of all prefixes
// of a path cost one pass over it, and a child's hash costs its own name only. Copy it to descend.
//
// Not thread-safe.
class PathHasher {
 public:
  void append(std::string_view bytes);

  // Goes down to the child of this name: the separator, where one is needed, and the name.
  void descend(std::string_view name);

  // Of everything appended so far. The hasher can go on afterwards.
  PathHash hash() const;

 private:
  static constexpr std::size_t block_bytes = 16;

  std::uint64_t h1_ = 0;
  std::uint64_t h2_ = 0;
  std::uint64_t length_ = 0;
  std::array<unsigned char, block_bytes> tail_{};  // length_ % 16 bytes of it count
};

PathHash hash_path(std::string_view path);

// Calls visit(PathHash, is_last) for every prefix of a normalised path, shortest first, the path
// itself last.
template <class Visit>
void for_each_prefix_hash(std::string_view path, Visit&& visit) {
  PathHasher hasher;
  for (ComponentCursor at(path); at.next();) {
    hasher.descend(at.component());
    visit(hasher.hash(), at.is_last());
  }
}

}  // namespace spoor::tracker
