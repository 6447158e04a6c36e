#pragma once

namespace spoor::support {

// Whether a sanitizer is built in: what it can find over many rounds it finds in a few, ten times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

}  // namespace spoor::support
