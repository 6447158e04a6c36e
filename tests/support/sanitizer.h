#pragma once

// g++ defines a macro for each sanitizer; clang answers when asked.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPOOR_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SPOOR_IS_SANITIZED 1
#endif
#endif
#ifndef SPOOR_IS_SANITIZED
#define SPOOR_IS_SANITIZED 0
#endif

namespace spoor::support {

// Whether a sanitizer is built in: what it can find over many rounds it finds in a few, ten times slower.
inline constexpr bool is_sanitized = SPOOR_IS_SANITIZED != 0;

}  // namespace spoor::support
