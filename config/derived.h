#pragma once

#include <optional>
#include <string>

#include "config/config.h"
#include "tracker/paths/namespace_rules.h"

namespace spoor::config {

// The URL at which other nodes reach this node: `peers.etcd.url`, or else the first listener with a fixed
// port and an IP address that is neither loopback nor a wildcard. std::nullopt if there is none.
std::optional<std::string> advertised_url(const Config& config);

// The rules of `namespace`.
tracker::NamespaceRules namespace_rules(const Config& config);

}  // namespace spoor::config
