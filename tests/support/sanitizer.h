#pragma once

// g++ defines a macro for each sanitizer; clang has __has_feature().
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

// Whether a sanitizer is enabled: it finds in a few rounds what it can find in many, and is ten times slower.
inline constexpr bool is_sanitized = SPOOR_IS_SANITIZED != 0;

}  // namespace spoor::support
