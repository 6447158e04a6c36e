// Files in MinIO's format, made small by hand; those of MinIO's own making are in tests/golden.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tracker/filter/bloom_filter.h"
#include "tracker/filter/hash.h"

namespace spoor::tracker {

inline void put_little(std::string& bytes, std::uint64_t value) {
  for (unsigned shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(value >> shift & 0xFFU);
}

inline void put_big(std::string& bytes, std::uint64_t value) {
  for (unsigned shift = 64; shift > 0; shift -= 8) bytes += static_cast<char>(value >> (shift - 8) & 0xFFU);
}

// The one path that a cycle of these files holds.
inline std::string minio_path_of(std::uint64_t cycle) { return "bucket/cycle-" + std::to_string(cycle); }

inline std::string minio_bytes_of(const BloomFilter& filter) {
  std::string bytes;
  put_big(bytes, filter.shape().bits);
  put_big(bytes, filter.shape().hashes);
  put_big(bytes, filter.shape().bits);
  for (const std::uint64_t word : filter.words()) put_big(bytes, word);
  return bytes;
}

inline std::string minio_filter_of(const std::string& path) {
  BloomFilter filter({1'009, 7});
  filter.add(hash_path(path));
  return minio_bytes_of(filter);
}

inline std::string minio_header(std::uint64_t saved_s, std::uint64_t current) {
  std::string bytes = "\x07";
  put_little(bytes, saved_s);
  put_little(bytes, current);
  return bytes;
}

inline std::string minio_file(std::uint64_t saved_s, std::uint64_t current,
                              const std::vector<std::uint64_t>& history) {
  std::string bytes = minio_header(saved_s, current);
  bytes += minio_filter_of(minio_path_of(current));
  put_little(bytes, history.size());
  for (const std::uint64_t cycle : history) {
    put_little(bytes, cycle);
    bytes += minio_filter_of(minio_path_of(cycle));
  }
  return bytes;
}

}  // namespace spoor::tracker
