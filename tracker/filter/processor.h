// Selects code for processor extensions (AVX-512) at run time.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
#define SPOOR_AVX512 __attribute__((target("avx512bw,avx512dq,avx512vl,bmi,bmi2")))
#endif

namespace spoor::tracker {

// Whether this processor can run functions declared SPOOR_AVX512.
inline bool has_avx512() {
#if defined(SPOOR_AVX512)
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

}  // namespace spoor::tracker
