#pragma once

#include <boost/container/small_vector.hpp>
#include <span>
#include <string_view>

#include "tracker/hash.h"
#include "tracker/processor.h"

namespace spoor::tracker {

// The hashes of all prefixes of a normalised path, shortest first, the path itself last. The root has one,
// that of the empty path.
//
// Takes no memory for up to 32 of them.
class PrefixHashes {
 public:
  // `wide` only where has_avx512().
  explicit PrefixHashes(std::string_view path, bool wide = has_avx512());

  // Goes up to the parent, which for a path at the top is the root.
  void drop_last();

  std::span<const PathHash> all() const { return {hashes_.data(), hashes_.size()}; }

 private:
  void hash_wide(std::string_view path);

  boost::container::small_vector<PathHash, 32> hashes_;
};

}  // namespace spoor::tracker
