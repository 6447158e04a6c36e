// Reads settings from a JSON document.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/problem.h"

namespace spoor::config {

// The dotted keys of all settings; the key of each section precedes those of its settings.
std::vector<std::string_view> known_keys();

// Copies the settings of `document` to `config`. Adds each unknown key and each value of the wrong type to
// `problems`; such a setting keeps its previous value. Does not check ranges (validate.h).
// `override_text`: the document contains one setting, given as key=value; this is its unparsed value. For a
// setting of type string, a value without quotes is a string even if it looks like a number.
void read_settings(const nlohmann::json& document, std::optional<std::string_view> override_text,
                   Config& config, Problems& problems);

}  // namespace spoor::config
