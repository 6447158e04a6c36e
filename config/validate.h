#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace spoor::config {

// Returns one message per invalid setting, with its key, its value and the accepted values. Depends on
// `config` only: accesses no file and no network.
std::vector<std::string> validate(const Config& config);

// Returns one message for each pair of drives that are the same directory or are nested, by symbolic links or
// mounts. Accesses the drives; a missing drive is ignored.
std::vector<std::string> find_drive_overlaps(const Config& config);

}  // namespace spoor::config
