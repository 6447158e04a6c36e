#include "tracker/filter/hash.h"

#include <algorithm>
#include <bit>
#include <boost/endian/conversion.hpp>
#include <cstring>

#include "tracker/paths/byte_scan.h"

#if defined(SPOOR_AVX512)
#include <immintrin.h>
#endif

namespace spoor::tracker {
namespace {

constexpr std::size_t block_bytes = 16;

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

constexpr Tails tail_table;

// The block's first `length` bytes, at most 15, padded with zeros.
Block cut(Block block, std::size_t length) {
  return {block.low & tail_table.masks[length].low, block.high & tail_table.masks[length].high};
}

// A block cut at `length`, followed by one byte 0x01.
Block with_one(Block block, std::size_t length) {
  return {block.low | tail_table.ones[length].low, block.high | tail_table.ones[length].high};
}

constexpr std::uint64_t murmur_c1 = 0x87c37b91114253d5U;
constexpr std::uint64_t murmur_c2 = 0x4cf5ad432745937fU;
constexpr std::array<std::uint64_t, 2> final_factors{0xff51afd7ed558ccdU, 0xc4ceb9fe1a85ec53U};

std::uint64_t mix_low(std::uint64_t k) { return std::rotl(k * murmur_c1, 31) * murmur_c2; }
std::uint64_t mix_high(std::uint64_t k) { return std::rotl(k * murmur_c2, 33) * murmur_c1; }

std::uint64_t final_mix(std::uint64_t k) {
  for (const std::uint64_t factor : final_factors) k = (k ^ (k >> 33U)) * factor;
  return k ^ (k >> 33U);
}

void mix(MurmurState& state, Block block) {
  state.h1 ^= mix_low(block.low);
  state.h1 = (std::rotl(state.h1, 27) + state.h2) * 5 + 0x52dce729U;
  state.h2 ^= mix_high(block.high);
  state.h2 = (std::rotl(state.h2, 31) + state.h1) * 5 + 0x38495ab5U;
}

struct Pair {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

// The hash of a key of `length` bytes whose last length % 16 bytes are in `tail`. An empty tail mixes to
// zero, which is the same as Appleby's code, which skips it.
Pair finish_state(const MurmurState& state, Block tail, std::uint64_t length) {
  std::uint64_t h1 = state.h1 ^ mix_low(tail.low) ^ length;
  std::uint64_t h2 = state.h2 ^ mix_high(tail.high) ^ length;
  h1 += h2;
  h2 += h1;
  h1 = final_mix(h1);
  h2 = final_mix(h2);
  h1 += h2;
  h2 += h1;
  return {h1, h2};
}

// The hash of a key: its whole blocks are mixed into `state`, its last `held` bytes, at most 15, are the
// first bytes of `block`.
PathHash finish_hash(const MurmurState& state, Block block, std::size_t held, std::uint64_t length) {
  const auto tail = cut(block, held);
  const auto padded = with_one(tail, held);
  const auto plain = finish_state(state, tail, length);
  // The key followed by 0x01 has the same whole blocks; the byte may complete one more.
  Pair twin;
  if (held + 1 == block_bytes) {
    MurmurState behind = state;
    mix(behind, padded);
    twin = finish_state(behind, {}, length + 1);
  } else {
    twin = finish_state(state, padded, length + 1);
  }
  return {{plain.first, plain.second, twin.first, twin.second}};
}

// PrefixHashes reads a path in pieces of so many blocks.
constexpr std::size_t blocks = separators_bytes / block_bytes;

}  // namespace

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
    mix(state_, Block::load(tail_.data()));
  }
  for (; left >= block_bytes; at += block_bytes, left -= block_bytes) mix(state_, Block::load(at));
  if (left != 0) std::memcpy(tail_.data(), at, left);
}

void PathHasher::descend(std::string_view name) {
  if (length_ != 0) append("/");
  append(name);
}

PathHash PathHasher::hash() const {
  return finish_hash(state_, Block::load(tail_.data()), length_ % block_bytes, length_);
}

PathHash hash_path(std::string_view path) {
  PathHasher hasher;
  hasher.append(path);
  return hasher.hash();
}

PrefixHashes::PrefixHashes(std::string_view path, bool wide) {
  if (path.empty()) {
    hashes_.push_back(hash_path(path));
  } else if (wide) {
    hash_wide(path);
  } else {
    hash(path);
  }
}

void PrefixHashes::drop_last() {
  hashes_.pop_back();
  if (hashes_.empty()) hashes_.push_back(hash_path(""));
}

// In pieces of as many bytes as are searched for separators at once.
void PrefixHashes::hash(std::string_view path) {
  MurmurState state;
  const auto* bytes = reinterpret_cast<const unsigned char*>(path.data());
  for (std::size_t begin = 0;; begin += separators_bytes, bytes += separators_bytes) {
    const std::size_t size = std::min(path.size() - begin, separators_bytes);
    const bool is_last = size < separators_bytes;
    // The states before each block of these bytes, and the blocks.
    std::array<MurmurState, blocks> before;
    std::array<Block, blocks> block;
    const std::size_t whole = size / block_bytes;
    for (std::size_t i = 0; i < whole; ++i) {
      before[i] = state;
      block[i] = Block::load(bytes + i * block_bytes);
      mix(state, block[i]);
    }
    if (whole < blocks) {
      before[whole] = state;
      block[whole] = Block::load_part(bytes + whole * block_bytes, size % block_bytes);
    }
    std::uint64_t ends = separators_in(path.substr(begin, size));
    if (is_last) ends |= std::uint64_t{1} << size;
    for (; ends != 0; ends &= ends - 1) {
      const auto end = static_cast<std::size_t>(std::countr_zero(ends));
      const std::size_t in = end / block_bytes;
      hashes_.push_back(finish_hash(before[in], block[in], end % block_bytes, begin + end));
    }
    if (is_last) return;
  }
}

#if defined(SPOOR_AVX512)
namespace {

// Vectors of 256 bits: multiplications of 512 bits reduce the processor's clock rate.
struct Wide {
  SPOOR_AVX512 static __m256i constants(std::uint64_t even, std::uint64_t odd) {
    return _mm256_set_epi64x(static_cast<long long>(odd), static_cast<long long>(even),
                             static_cast<long long>(odd), static_cast<long long>(even));
  }

  // For each pair of words: the first becomes the sum of both, the second that sum plus itself.
  SPOOR_AVX512 static __m256i add_pairs(__m256i pairs) {
    const __m256i sums = _mm256_add_epi64(pairs, _mm256_shuffle_epi32(pairs, 0x4e));
    return _mm256_mask_add_epi64(sums, 0b1010, sums, pairs);
  }

  // finish_state() of a key and of the key followed by 0x01, as four words: `state` is that of the
  // whole blocks, twice, `tails` has the rests of both keys, `length` is that of the first.
  SPOOR_AVX512 static __m256i finish(__m256i state, __m256i tails, std::uint64_t length) {
    const __m256i first = constants(murmur_c1, murmur_c2);
    const __m256i second = constants(murmur_c2, murmur_c1);
    const __m256i lengths =
        _mm256_add_epi64(_mm256_set1_epi64x(static_cast<long long>(length)), _mm256_set_epi64x(1, 1, 0, 0));
    const __m256i turned = _mm256_rolv_epi64(_mm256_mullo_epi64(tails, first), constants(31, 33));
    __m256i words = _mm256_xor_si256(_mm256_xor_si256(state, lengths), _mm256_mullo_epi64(turned, second));
    words = add_pairs(words);
    for (const std::uint64_t factor : final_factors) {
      words = _mm256_xor_si256(words, _mm256_srli_epi64(words, 33));
      words = _mm256_mullo_epi64(words, constants(factor, factor));
    }
    words = _mm256_xor_si256(words, _mm256_srli_epi64(words, 33));
    return add_pairs(words);
  }

  // A mask of the `/` among the first `size` bytes, at most 64. Reads only these bytes.
  SPOOR_AVX512 static std::uint64_t separators_in(const unsigned char* bytes, std::size_t size) {
    const __m256i separators = _mm256_set1_epi8('/');
    const auto there = static_cast<std::uint64_t>(_bzhi_u64(~0ULL, static_cast<unsigned>(size)));
    const auto low = static_cast<std::uint32_t>(there);
    const auto high = static_cast<std::uint32_t>(there >> 32U);
    const std::uint64_t in_low = _mm256_cmpeq_epi8_mask(_mm256_maskz_loadu_epi8(low, bytes), separators);
    const std::uint64_t in_high =
        _mm256_cmpeq_epi8_mask(_mm256_maskz_loadu_epi8(high, bytes + 32), separators);
    return in_low | in_high << 32U;
  }

  // `before` has the state before each block of the 64 bytes at `bytes`, which are at offset `begin` of the
  // path.
  SPOOR_AVX512 static void finish_prefix(const std::array<MurmurState, blocks>& before,
                                         const unsigned char* bytes, std::size_t end, std::size_t begin,
                                         PathHash* out) {
    const std::size_t in = end / block_bytes;
    const std::size_t held = end % block_bytes;
    const unsigned char* const block = bytes + in * block_bytes;
    if (held + 1 == block_bytes) {  // the byte 0x01 completes a block
      *out = finish_hash(before[in], Block::load_part(block, held), held, begin + end);
      return;
    }
    const auto rest = static_cast<__mmask16>((1U << held) - 1);
    const __m256i tail = _mm256_broadcastsi128_si256(_mm_maskz_loadu_epi8(rest, block));
    const __m256i tails = _mm256_mask_mov_epi8(tail, std::uint32_t{1} << (16 + held), _mm256_set1_epi8(1));
    const __m256i state =
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(&before[in])));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), finish(state, tails, begin + end));
  }
};

}  // namespace

SPOOR_AVX512 void PrefixHashes::hash_wide(std::string_view path) {
  MurmurState state;
  const auto* bytes = reinterpret_cast<const unsigned char*>(path.data());
  for (std::size_t begin = 0;; begin += separators_bytes, bytes += separators_bytes) {
    const std::size_t size = std::min(path.size() - begin, separators_bytes);
    const bool is_last = size < separators_bytes;
    std::array<MurmurState, blocks> before;
    for (std::size_t i = 0, whole = size / block_bytes;; ++i) {
      if (i < blocks) before[i] = state;
      if (i == whole) break;
      mix(state, Block::load(bytes + i * block_bytes));
    }
    std::uint64_t ends = Wide::separators_in(bytes, size);
    if (is_last) ends |= std::uint64_t{1} << size;
    const std::size_t at = hashes_.size();
    hashes_.resize(at + static_cast<std::size_t>(std::popcount(ends)), boost::container::default_init);
    for (PathHash* out = hashes_.data() + at; ends != 0; ends &= ends - 1, ++out) {
      Wide::finish_prefix(before, bytes, static_cast<std::size_t>(std::countr_zero(ends)), begin, out);
    }
    if (is_last) return;
  }
}
#else
void PrefixHashes::hash_wide(std::string_view /*path*/) {}
#endif

}  // namespace spoor::tracker
