// JSON as Spoor's configuration wants it: no key twice, no trailing text, bounded nesting.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "config/problem.h"

namespace spoor::config {

enum class Comments { allowed, refused };

// The document in `text`. Where it is none, adds to `problems` what is wrong, and where.
std::optional<nlohmann::json> parse_document(std::string_view text, Comments comments, Problems& problems);

}  // namespace spoor::config
