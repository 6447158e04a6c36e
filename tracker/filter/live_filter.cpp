#include "tracker/filter/live_filter.h"

#include <algorithm>
#include <array>
#include <new>
#include <vector>

#if defined(SPOOR_AVX512)
#include <immintrin.h>
#endif

namespace spoor::tracker {
namespace {

// The shapes that may_contain_first_wide() supports.
constexpr std::uint64_t wide_hashes = 4;
constexpr std::uint64_t wide_bits_min = (std::uint64_t{1} << 14U) + 1;

}  // namespace

// With calloc() a large block becomes resident only when it is written to; a vector would write zeros to all.
LiveFilter::LiveFilter(BloomShape shape)
    : shape_(shape),
      positions_(shape),
      inverse_((1 - 0x1p-51) / static_cast<double>(shape.bits)),
      words_(static_cast<std::uint64_t*>(std::calloc(shape.word_count(), sizeof(std::uint64_t)))) {
  if (words_ == nullptr) throw std::bad_alloc();
}

LiveFilter::LiveFilter(const BloomFilter& filter) : LiveFilter(filter.shape()) {
  BloomFilter dense(filter.shape());
  dense.merge(filter);
  std::copy(dense.words().begin(), dense.words().end(), words_.get());
  bits_set_ = dense.bits_set();
}

std::size_t LiveFilter::may_contain_first(std::span<const PathHash> hashes, bool wide) const {
  if (wide && shape_.hashes == wide_hashes && shape_.bits >= wide_bits_min)
    return may_contain_first_wide(hashes);
  std::size_t at = 0;
  while (at < hashes.size() && may_contain(hashes[at])) ++at;
  return at;
}

#if defined(SPOOR_AVX512)
// The four positions of a key side by side.
//
// x mod m with doubles: x, 1/m and their product are rounded by a factor of at most 1 + 2^-53 each, and the
// factor 1 - 2^-51 compensates, so that the quotient is never too large. It is too small by at most 2^-50 of
// its value, less than 2^64 / 2^14 * 2^-50 = 1 for m > 2^14: the integer quotient is exact or one too small.
SPOOR_AVX512 std::size_t LiveFilter::may_contain_first_wide(std::span<const PathHash> hashes) const {
  const __m256i bits = _mm256_set1_epi64x(static_cast<long long>(shape_.bits));
  const __m256d inverse = _mm256_set1_pd(inverse_);
  std::size_t at = 0;
  for (; at < hashes.size(); ++at) {
    // The keys of the positions, by the words h0 to h3 of the hash: h0, h1 + h3, h0 + 2 h3, h1 + 3 h2.
    const __m256i hash = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(hashes[at].words.data()));
    const __m256i steps = _mm256_permute4x64_epi64(hash, 0b10'11'11'00);
    __m256i x = _mm256_permute4x64_epi64(hash, 0b01'00'01'00);
    x = _mm256_mask_add_epi64(x, 0b1010, x, steps);
    x = _mm256_mask_add_epi64(x, 0b1100, x, _mm256_add_epi64(steps, steps));
    const __m256i quotient = _mm256_cvttpd_epu64(_mm256_mul_pd(_mm256_cvtepu64_pd(x), inverse));
    const __m256i rest = _mm256_sub_epi64(x, _mm256_mullo_epi64(quotient, bits));
    const __m256i position = _mm256_min_epu64(rest, _mm256_sub_epi64(rest, bits));
    alignas(32) std::array<std::uint64_t, wide_hashes> at_bits{};
    _mm256_store_si256(reinterpret_cast<__m256i*>(at_bits.data()), position);
    if ((bit(at_bits[0]) & bit(at_bits[1]) & bit(at_bits[2]) & bit(at_bits[3])) == 0) break;
  }
  return at;
}
#else
std::size_t LiveFilter::may_contain_first_wide(std::span<const PathHash> /*hashes*/) const { return 0; }
#endif

BloomFilter LiveFilter::copy() const {
  std::vector<std::uint64_t> words(shape_.word_count());
  for (std::size_t at = 0; at < words.size(); ++at) {
    words[at] = std::atomic_ref<std::uint64_t>(words_.get()[at]).load(std::memory_order_relaxed);
  }
  return {shape_, std::move(words)};
}

}  // namespace spoor::tracker
