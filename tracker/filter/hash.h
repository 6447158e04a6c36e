// The hash of a path and of every prefix of it, in one pass (docs/formats.md, "Hash").
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// Declares a function for the extensions of some processors.
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

// The four words from which a filter computes its positions: MurmurHash3 x64 128 (Appleby, seed 0) of the
// key, and of the key followed by a byte 0x01.
struct PathHash {
  std::array<std::uint64_t, 4> words;

  friend bool operator==(const PathHash&, const PathHash&) = default;
};

PathHash hash_path(std::string_view path);

// The state of MurmurHash3 x64 128 (Appleby, seed 0) after whole blocks of 16 bytes.
struct MurmurState {
  std::uint64_t h1 = 0;
  std::uint64_t h2 = 0;
};

// Hashes a path incrementally: appended bytes are not read again, so the hash of a child reads only its name.
// Copy the hasher to descend.
//
// Not thread-safe.
class PathHasher {
 public:
  void append(std::string_view bytes);

  // Appends a separator, unless the path is empty, and the child's name.
  void descend(std::string_view name);

  // The hash of all bytes appended so far. More can be appended afterwards.
  PathHash hash() const;

 private:
  MurmurState state_;
  std::uint64_t length_ = 0;
  std::array<unsigned char, 16> tail_{};  // the first length_ % 16 bytes are valid
};

// The hashes of all prefixes of a normalised path, shortest first, the path itself last. The root has one
// hash, that of the empty path.
//
// Allocates only for more than 32 hashes.
class PrefixHashes {
 public:
  // `wide` requires has_avx512().
  explicit PrefixHashes(std::string_view path, bool wide = has_avx512());

  // Changes to the hashes of the parent; that of a top-level path is the root.
  void drop_last();

  std::span<const PathHash> all() const { return {hashes_.data(), hashes_.size()}; }

 private:
  void hash(std::string_view path);
  void hash_wide(std::string_view path);

  boost::container::small_vector<PathHash, 32> hashes_;
};

}  // namespace spoor::tracker
