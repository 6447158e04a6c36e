// What to say about a key that does not exist.
#pragma once

#include <span>
#include <string_view>

#include "config/problem.h"

namespace spoor::config {

// The one of `known` (dotted keys, not empty) that someone who wrote `key` most likely meant: by edit
// distance, where the right name in the wrong section counts as one small slip.
std::string_view nearest_key(std::string_view key, std::span<const std::string_view> known);

// "unknown key 'tracker.item': did you mean 'tracker.items'?"
Problem unknown_key(std::string_view key, std::span<const std::string_view> known);

}  // namespace spoor::config
