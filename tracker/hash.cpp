#include "tracker/hash.h"

#include <algorithm>
#include <bit>
#include <boost/endian/conversion.hpp>
#include <cstring>

namespace spoor::tracker {
namespace {

constexpr std::uint64_t c1 = 0x87c37b91114253d5U;
constexpr std::uint64_t c2 = 0x4cf5ad432745937fU;

std::uint64_t load(const unsigned char* at) { return boost::endian::load_little_u64(at); }

std::uint64_t mix_k1(std::uint64_t k) { return std::rotl(k * c1, 31) * c2; }
std::uint64_t mix_k2(std::uint64_t k) { return std::rotl(k * c2, 33) * c1; }

void mix_block(std::uint64_t& h1, std::uint64_t& h2, const unsigned char* block) {
  h1 ^= mix_k1(load(block));
  h1 = (std::rotl(h1, 27) + h2) * 5 + 0x52dce729U;
  h2 ^= mix_k2(load(block + 8));
  h2 = (std::rotl(h2, 31) + h1) * 5 + 0x38495ab5U;
}

std::uint64_t final_mix(std::uint64_t k) {
  k = (k ^ (k >> 33U)) * 0xff51afd7ed558ccdU;
  k = (k ^ (k >> 33U)) * 0xc4ceb9fe1a85ec53U;
  return k ^ (k >> 33U);
}

struct Pair {
  std::uint64_t first;
  std::uint64_t second;
};

// `tail` holds the length % 16 bytes behind the last whole block, zeros behind them. An empty tail
// mixes to zero, as Appleby's does by leaving it out.
Pair finish(std::uint64_t h1, std::uint64_t h2, const std::array<unsigned char, 16>& tail,
            std::uint64_t length) {
  h1 ^= mix_k1(load(tail.data())) ^ length;
  h2 ^= mix_k2(load(tail.data() + 8)) ^ length;
  h1 += h2;
  h2 += h1;
  h1 = final_mix(h1);
  h2 = final_mix(h2);
  h1 += h2;
  h2 += h1;
  return {h1, h2};
}

}  // namespace

void PathHasher::append(std::string_view bytes) {
  if (bytes.empty()) return;  // it may have no address either
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
    mix_block(h1_, h2_, tail_.data());
  }
  for (; left >= block_bytes; at += block_bytes, left -= block_bytes) mix_block(h1_, h2_, at);
  if (left != 0) std::memcpy(tail_.data(), at, left);
}

void PathHasher::descend(std::string_view name) {
  if (length_ != 0) append("/");
  append(name);
}

PathHash PathHasher::hash() const {
  const std::size_t held = length_ % block_bytes;
  std::array<unsigned char, block_bytes> tail{};
  std::copy_n(tail_.begin(), held, tail.begin());
  const Pair plain = finish(h1_, h2_, tail, length_);

  // The same key with 0x01 behind it shares all whole blocks; the byte may complete one more.
  tail[held] = 1;
  Pair padded{};
  if (held + 1 == block_bytes) {
    std::uint64_t h1 = h1_;
    std::uint64_t h2 = h2_;
    mix_block(h1, h2, tail.data());
    padded = finish(h1, h2, {}, length_ + 1);
  } else {
    padded = finish(h1_, h2_, tail, length_ + 1);
  }
  return {{plain.first, plain.second, padded.first, padded.second}};
}

PathHash hash_path(std::string_view path) {
  PathHasher hasher;
  hasher.append(path);
  return hasher.hash();
}

}  // namespace spoor::tracker
