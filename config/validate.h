#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace spoor::config {

// Everything that is wrong with the settings, a sentence each that names the key, the value and what
// is accepted. Looks at nothing but `config`: no file, no network.
std::vector<std::string> validate(const Config& config);

// Drives that are one directory, or lie one inside the other, by symbolic links or mounts: a sentence for
// each. Looks at the drives; of one that is not there nothing is known.
std::vector<std::string> find_drive_overlaps(const Config& config);

}  // namespace spoor::config
