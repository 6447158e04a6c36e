// From a JSON document to settings.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/problem.h"

namespace spoor::config {

enum class Origin {
  file,
  // The document holds one setting, given as key=value: text without quotes is text, even where it
  // looks like a number.
  override_text,
};

// Every setting's dotted key, and each section's own before them.
std::vector<std::string_view> known_keys();

// Puts every setting of `document` into `config` and adds to `problems` every unknown key and every
// value of the wrong form, whose setting then keeps its value. Ranges are not checked (validate.h).
// `text` is the value as it was written, for Origin::override_text.
void read_settings(const nlohmann::json& document, Origin origin, std::string_view text, Config& config,
                   Problems& problems);

}  // namespace spoor::config
