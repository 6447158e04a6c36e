#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace spoor::config {

// Everything that is wrong with the settings, a sentence each that names the key, the value and what
// is accepted. Looks at nothing but `config`: no file, no network.
std::vector<std::string> validate(const Config& config);

}  // namespace spoor::config
