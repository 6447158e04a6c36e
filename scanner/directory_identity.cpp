#include "scanner/directory_identity.h"

#include <xxhash.h>

#include <algorithm>

namespace spoor::scanner {
namespace {

// The lowest bit says whether it is a proof.
constexpr std::uint32_t proof_bit = 1;

}  // namespace

std::uint32_t identity_of_birth(std::int64_t birth_ns) {
  return XXH32(&birth_ns, sizeof birth_ns, 0) | proof_bit;
}

std::uint32_t identity_of_generation(std::uint32_t generation) {
  return XXH32(&generation, sizeof generation, 0) | proof_bit;
}

std::uint32_t identity_of_ctime(std::int64_t ctime_ns) {
  return std::max<std::uint32_t>(XXH32(&ctime_ns, sizeof ctime_ns, 0) & ~proof_bit, 2);
}

bool is_proof(std::uint32_t identity) { return (identity & proof_bit) != 0; }

}  // namespace spoor::scanner
