// The error message for an unknown key.
#pragma once

#include <span>
#include <string_view>

#include "config/problem.h"

namespace spoor::config {

// The entry of `known` (dotted keys, not empty) with the smallest edit distance to `key`. The right name in
// the wrong section counts as less than one edit.
std::string_view nearest_key(std::string_view key, std::span<const std::string_view> known);

// "unknown key 'tracker.item': did you mean 'tracker.items'?"
Problem unknown_key(std::string_view key, std::span<const std::string_view> known);

}  // namespace spoor::config
