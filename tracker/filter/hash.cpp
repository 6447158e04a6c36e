#include "tracker/filter/hash.h"

#include <algorithm>
#include <cstring>

namespace spoor::tracker {

using murmur3::Block;
using murmur3::block_bytes;

void PathHasher::append(std::string_view bytes) {
  if (bytes.empty()) return;  // its address may be null
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  const std::size_t held = length_ % block_bytes;
  length_ += left;
  if (held != 0) {
    const std::size_t taken = std::min(block_bytes - held, left);
    std::memcpy(tail_.data() + held, at, taken);
    at += taken;
    left -= taken;
    if (held + taken < block_bytes) return;
    state_.mix(Block::load(tail_.data()));
  }
  for (; left >= block_bytes; at += block_bytes, left -= block_bytes) state_.mix(Block::load(at));
  if (left != 0) std::memcpy(tail_.data(), at, left);
}

void PathHasher::descend(std::string_view name) {
  if (length_ != 0) append("/");
  append(name);
}

PathHash hash_path(std::string_view path) {
  murmur3::State state;
  const auto* at = reinterpret_cast<const unsigned char*>(path.data());
  std::size_t left = path.size();
  for (; left >= block_bytes; at += block_bytes, left -= block_bytes) state.mix(Block::load(at));
  return finish_hash(state, Block::load_part(at, left), left, path.size());
}

}  // namespace spoor::tracker
