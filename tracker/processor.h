// Code for processors that have more than every x86-64 has, chosen while running.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
#define SPOOR_AVX512 __attribute__((target("avx512bw,avx512dq,avx512vl,bmi,bmi2")))
#endif

namespace spoor::tracker {

// Whether functions declared SPOOR_AVX512 can run here.
inline bool has_avx512() {
#if defined(SPOOR_AVX512)
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

}  // namespace spoor::tracker
