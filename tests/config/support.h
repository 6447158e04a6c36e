// What the tests of the configuration share.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.h"

namespace spoor::config {

inline constexpr std::string_view minimal = R"({"node":{"name":"x"},"drives":["/srv/data"]})";

// The example of the HTTP and command line contract.
inline constexpr std::string_view full = R"({
  "node":    {"name": "node1", "cluster": "default", "data_dir": "/var/lib/spoor"},
  "drives":  ["/mnt/disk1", "/mnt/disk2"],
  "listen":  [{"address": "127.0.0.1", "port": 7420}, {"unix": "/run/spoor/spoor.sock"}],
  "tracker": {"items": 200000, "fp_rate": 0.1, "history": 16, "save_interval": "5m", "durability": "disk", "memory_limit": "256MiB"},
  "namespace": {"exclude": [], "bucket_names": "any"},
  "peers":   {"static": ["http://10.0.0.2:7420"], "dns": [], "etcd": null, "timeout": "10s"},
  "scan":    {"min_cycle_age": "60s", "require": "any", "new_peers": "walk", "threads": 0, "max_dirs_per_second": 0, "audit_period": "30d"},
  "auth":    {"tokens": []},
  "limits":  {"max_body": "8MiB", "max_connections": 1024},
  "log":     {"level": "info", "format": "text"}
})";

inline base::Result<Config> load_minimal(const std::vector<std::string>& overrides = {}) {
  return load_text(minimal, "spoor.json", overrides);
}

// The message of the error that loading `text` gives, or what went wrong with that.
inline std::string error_of(const base::Result<Config>& loaded) {
  if (loaded) return "(loaded without an error)";
  if (loaded.error().code != std::errc::invalid_argument) return "(another code) " + loaded.error().message;
  return loaded.error().message;
}

inline std::string error_of_text(std::string_view text) {
  return error_of(load_text(text, "spoor.json", {}));
}

// One line for each problem of a minimal configuration with these overrides; none if it is valid.
inline std::vector<std::string> problems(const std::vector<std::string>& overrides) {
  std::vector<std::string> lines;
  const auto loaded = load_minimal(overrides);
  if (loaded) return lines;
  std::istringstream text(error_of(loaded));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

}  // namespace spoor::config
