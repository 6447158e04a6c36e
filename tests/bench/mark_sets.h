// Filled mark sets.
#pragma once

#include <cstddef>
#include <string>

#include "tracker/filter/hash.h"
#include "tracker/filter/mark_set.h"

namespace spoor::bench {

// So many keys in a filter of the default level 0.
inline tracker::MarkSet mark_set_of(std::size_t items) {
  const auto level_0 = tracker::BloomShape::for_items(200'000, 0.1);
  tracker::MarkSet marks;
  for (std::size_t i = 0; i < items; ++i) marks.add(tracker::hash_path("key-" + std::to_string(i)), level_0);
  return marks;
}

}  // namespace spoor::bench
