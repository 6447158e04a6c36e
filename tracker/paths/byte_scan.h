// Finds separators in a path, many bytes at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace spoor::tracker {

inline constexpr std::size_t separators_bytes = 64;

// A mask of the `/` among the first 64 bytes of `text`: bit i is set if byte i is `/`.
inline std::uint64_t separators_in(std::string_view text) {
  std::uint64_t found = 0;
  std::size_t at = 0;
  const std::size_t size = text.size() < separators_bytes ? text.size() : separators_bytes;
#if defined(__SSE2__)
  const __m128i separators = _mm_set1_epi8('/');
  for (; at + 16 <= size; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at));
    const auto equal = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, separators)));
    found |= std::uint64_t{equal} << at;
  }
#endif
  for (; at < size; ++at) found |= std::uint64_t{text[at] == '/'} << at;
  return found;
}

}  // namespace spoor::tracker
