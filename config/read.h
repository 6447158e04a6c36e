// Reads settings from a JSON document.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/problem.h"

namespace spoor::config {

enum class Origin {
  file,
  // The document contains one setting, given as key=value. For a setting of type string, a value without
  // quotes is a string even if it looks like a number.
  override_text,
};

// The dotted keys of all settings; the key of each section precedes those of its settings.
std::vector<std::string_view> known_keys();

// Copies the settings of `document` to `config`. Adds each unknown key and each value of the wrong type to
// `problems`; such a setting keeps its previous value. Does not check ranges (validate.h).
// `text` is the unparsed value, for Origin::override_text only.
void read_settings(const nlohmann::json& document, Origin origin, std::string_view text, Config& config,
                   Problems& problems);

}  // namespace spoor::config
