#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace spoor::config {

// Every setting, in the form and order of the file. Loading it gives the same configuration, where
// `listen` then counts as given.
std::string to_json_text(const Config& config);

// The settings, dotted, in which the two differ.
std::vector<std::string> changed_keys(const Config& before, const Config& after);

}  // namespace spoor::config
