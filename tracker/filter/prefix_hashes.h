#pragma once

#include <boost/container/small_vector.hpp>
#include <span>
#include <string_view>

#include "tracker/filter/hash.h"
#include "tracker/filter/processor.h"

namespace spoor::tracker {

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
  void hash_wide(std::string_view path);

  boost::container::small_vector<PathHash, 32> hashes_;
};

}  // namespace spoor::tracker
