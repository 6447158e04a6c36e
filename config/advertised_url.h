#pragma once

#include <optional>
#include <string>

#include "config/config.h"

namespace spoor::config {

// Where other nodes reach this one: `peers.etcd.url`, or else the first listener with a fixed port whose
// address tells; nothing where none does.
std::optional<std::string> advertised_url(const Config& config);

}  // namespace spoor::config
