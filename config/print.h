#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace spoor::config {

// All settings as JSON, in the form and order of the file. Loading the text returns an equal configuration,
// except that `listen_is_default` is false.
std::string to_json_text(const Config& config);

// The dotted keys of the settings that differ.
std::vector<std::string> changed_keys(const Config& before, const Config& after);

}  // namespace spoor::config
