// What the tests of the configuration share.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.h"

namespace spoor::config {

inline constexpr std::string_view minimal = R"({"node":{"name":"x"},"drives":["/srv/data"]})";

// Each setting with another value than its default.
inline constexpr std::string_view everything = R"({
    "node": {"name": "n-1.a_B", "cluster": "c", "data_dir": "/d \"quoted\"\n"},
    "drives": ["/a", "/ä"],
    "listen": [{"address": "::1", "port": 0}, {"address": "0.0.0.0", "port": 1, "insecure": true, "page": false},
               {"unix": "/s", "insecure": true}, {"unix": "/u", "mode": "0600", "group": "g"},
               {"address": "::1", "tls": {"certificate": "/c", "key": "credential:k", "client_ca": "/ca"}}],
    "tracker": {"items": 199999, "fp_rate": 0.1000000000000010, "history": 3, "save_interval": "1001ms",
                "durability": "os", "memory_limit": 1099511627777},
    "namespace": {"exclude": ["*/tmp/*", "\u0001"], "bucket_names": "s3"},
    "peers": {"static": ["unix:/run/p.sock", "http://[::1]:1"], "dns": ["a.b:1", "srv:_s._tcp.b"],
              "dns_servers": ["::1", "10.0.0.1:1"], "dns_tls": true, "forget_after": "1h",
              "etcd": {"endpoints": ["http://[::1]:1", "unix:/e"], "prefix": "a/b", "ttl": "5s", "forget_after": "2m",
                       "url": "http://me:2", "user": "spoor", "password_file": "credential:etcd"},
              "token_file": "/t", "token_to_all": true,
              "tls": {"ca": "/ca", "certificate": "/c", "key": "/k"}, "timeout": "250ms"},
    "scan": {"min_cycle_age": "0s", "daemons": "own", "require": "all", "threads": 7, "max_dirs_per_second": 9,
             "audit_period": "0s", "file_feed": true},
    "usage": {"copies": [{"path": "b*/c", "factor": 1.5}],
              "limits": [{"bytes": "1TiB", "files": 5}, {"path": "b", "growth_per_day": 1024, "cluster": true}],
              "limit_command": "logger x", "owners": true},
    "history": {"keep": true, "depth": 3, "prefixes": ["b/c/d/e"]},
    "watch": {"drives": "all", "batch": "1ms", "timeout": "2ms", "unwatched": "partial"},
    "publish": {"interval": "1s", "sinks": [{"name": "b", "url": "nats://h", "topic": "t", "format": "structured",
                "batch": 7, "existing": false, "user": "u", "password_file": "/p"}]},
    "auth": {"tokens": [{"name": "a", "role": "mark", "file": "/f"}, {"name": "b", "role": "admin", "sha256":
             "0000000000000000000000000000000000000000000000000000000000000000"}], "unix": [{"user": "u", "role": "read"}],
             "certificates": [{"name": "*", "role": "peer"}]},
    "limits": {"max_body": "1KiB", "max_bodies": 4097, "threads": 256, "max_connections": 2},
    "log": {"level": "warning", "format": "json"}
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
