// Strict JSON for the configuration: duplicate keys, trailing text and deep nesting are errors.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "config/problem.h"

namespace spoor::config {

enum class Comments { allowed, refused };

// Parses `text`. On an error, returns std::nullopt and adds the error and its position to `problems`.
std::optional<nlohmann::json> parse_document(std::string_view text, Comments comments, Problems& problems);

}  // namespace spoor::config
