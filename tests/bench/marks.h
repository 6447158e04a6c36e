// Paths to mark, and filled mark sets.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tracker/filter/hash.h"
#include "tracker/filter/mark_set.h"
#include "tracker/paths/path.h"

namespace spoor::bench {

// So many keys in a filter of the default level 0.
inline tracker::MarkSet mark_set_of(std::size_t items) {
  const auto level_0 = tracker::BloomShape::for_items(200'000, 0.1);
  tracker::MarkSet marks;
  for (std::size_t i = 0; i < items; ++i) marks.add(tracker::hash_path("key-" + std::to_string(i)), level_0);
  return marks;
}

// Directories of so many components, no two alike but in the first; about 50 bytes at depth 5. Another
// `seed` gives others.
inline std::vector<tracker::Mark> random_marks(std::size_t depth, std::size_t count, std::size_t seed) {
  std::mt19937_64 engine(depth * 1000 + seed);
  std::vector<tracker::Mark> marks;
  for (std::size_t i = 0; i < count; ++i) {
    tracker::Mark mark{"bucket"};
    for (std::size_t d = 1; d < depth; ++d) mark.path += "/dir-" + std::to_string(engine() % 1'000'000);
    marks.push_back(std::move(mark));
  }
  return marks;
}

}  // namespace spoor::bench
