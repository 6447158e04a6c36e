#include "scanner/walk/directory_identity.h"

#include <xxhash.h>

#include <algorithm>

namespace spoor::scanner {
std::uint32_t identity_of_birth(std::int64_t birth_ns) {
  return XXH32(&birth_ns, sizeof birth_ns, 0) | identity_proof_bit;
}

std::uint32_t identity_of_generation(std::uint32_t generation) {
  return XXH32(&generation, sizeof generation, 0) | identity_proof_bit;
}

std::uint32_t identity_of_ctime(std::int64_t ctime_ns) {
  return std::max<std::uint32_t>(XXH32(&ctime_ns, sizeof ctime_ns, 0) & ~identity_proof_bit, 2);
}

bool is_another(const DirectoryRow& stored, const DirectoryHandle& found) {
  return is_proof(stored.birth) && is_proof(found.birth) && stored.birth != found.birth;
}

bool may_be_another(const DirectoryRow& stored, const DirectoryHandle& found) {
  return stored.is_read && (found.birth == no_identity || stored.birth != found.birth);
}

}  // namespace spoor::scanner
