// What follows from the settings of a configuration.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/endpoint.h"
#include "base/error.h"
#include "config/config.h"
#include "tracker/paths/namespace_rules.h"

namespace spoor::config {

// The URL at which other nodes reach this node: `peers.etcd.url`, or else the first listener with a fixed
// port and an IP address that is neither loopback nor a wildcard. std::nullopt if there is none.
std::optional<std::string> advertised_url(const Config& config);

// The endpoint of this configuration's daemon for a client on the same machine: the first Unix socket, else
// the first TCP listener. If `listen` is not set, the daemon may run without the socket, which is then
// used only if it exists.
base::Result<base::Endpoint> own_endpoint(const Config& config);

// Of the settings that say where members are. A scan and its daemon compare theirs: after a change of the
// configuration, the daemon has the old ones until it reads it again.
std::uint64_t members_digest(const Config::Peers& peers);

// For how long a node acknowledges marks that no source lists: scans of others expect it for longer, but for
// the shortest `peers.forget_after`. With `peers.static` alone for ever: nobody says who is listed elsewhere.
std::chrono::nanoseconds known_for(const Config::Peers& peers);

// The drives that spoor-watch watches: those of `watch.drives`.
std::vector<std::filesystem::path> watched_drives(const Config& config);

// The other drives.
std::vector<std::filesystem::path> unwatched_drives(const Config& config);

// Returns one message for each pair of drives that are the same directory or are nested, by symbolic links or
// mounts. Accesses the drives; a missing drive is ignored.
std::vector<std::string> find_drive_overlaps(const Config& config);

// The rules of `namespace`.
tracker::NamespaceRules namespace_rules(const Config& config);

}  // namespace spoor::config
