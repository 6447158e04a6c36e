#include "tracker/filter/prefix_hashes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(SPOOR_AVX512)
#include <immintrin.h>
#endif

namespace spoor::tracker {

PrefixHashes::PrefixHashes(std::string_view path, bool wide) {
  if (path.empty()) {
    hashes_.push_back(hash_path(path));
  } else if (wide) {
    hash_wide(path);
  } else {
    for_each_prefix_hash(path, [this](const PathHash& hash, bool) { hashes_.push_back(hash); });
  }
}

void PrefixHashes::drop_last() {
  hashes_.pop_back();
  if (hashes_.empty()) hashes_.push_back(hash_path(""));
}

#if defined(SPOOR_AVX512)
namespace {

constexpr std::size_t blocks = separators_bytes / murmur3::block_bytes;

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

  // murmur3::State::finish() of a key and of the key followed by 0x01, as four words: `state` is that of the
  // whole blocks, twice, `tails` has the rests of both keys, `length` is that of the first.
  SPOOR_AVX512 static __m256i finish(__m256i state, __m256i tails, std::uint64_t length) {
    using murmur3::State;
    const __m256i first = constants(State::c1, State::c2);
    const __m256i second = constants(State::c2, State::c1);
    const __m256i lengths =
        _mm256_add_epi64(_mm256_set1_epi64x(static_cast<long long>(length)), _mm256_set_epi64x(1, 1, 0, 0));
    const __m256i turned = _mm256_rolv_epi64(_mm256_mullo_epi64(tails, first), constants(31, 33));
    __m256i words = _mm256_xor_si256(_mm256_xor_si256(state, lengths), _mm256_mullo_epi64(turned, second));
    words = add_pairs(words);
    for (const std::uint64_t factor : State::final_factors) {
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
  SPOOR_AVX512 static void finish_prefix(const std::array<murmur3::State, blocks>& before,
                                         const unsigned char* bytes, std::size_t end, std::size_t begin,
                                         PathHash* out) {
    const std::size_t in = end / murmur3::block_bytes;
    const std::size_t held = end % murmur3::block_bytes;
    const unsigned char* const block = bytes + in * murmur3::block_bytes;
    if (held + 1 == murmur3::block_bytes) {  // the byte 0x01 completes a block
      *out = finish_hash(before[in], murmur3::Block::load_part(block, held), held, begin + end);
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
  murmur3::State state;
  const auto* bytes = reinterpret_cast<const unsigned char*>(path.data());
  for (std::size_t begin = 0;; begin += separators_bytes, bytes += separators_bytes) {
    const std::size_t size = std::min(path.size() - begin, separators_bytes);
    const bool is_last = size < separators_bytes;
    std::array<murmur3::State, blocks> before;
    for (std::size_t i = 0, whole = size / murmur3::block_bytes;; ++i) {
      if (i < blocks) before[i] = state;
      if (i == whole) break;
      state.mix(murmur3::Block::load(bytes + i * murmur3::block_bytes));
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
