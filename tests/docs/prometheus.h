// A real Prometheus on this machine.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "peer/http/http_transport.h"
#include "tests/support/process.h"

namespace spoor::docs {

// Listens on own_loopback(), and keeps its data in `directory`.
class Prometheus {
 public:
  Prometheus(const std::filesystem::path& config, const std::filesystem::path& directory);

  // The samples that an expression has now. Throws if it is not one.
  nlohmann::json query(const std::string& expression) const;

  // The response of another route of its API, such as "/api/v1/rules".
  nlohmann::json get(const std::string& target) const;

  std::string log() { return daemon_.log(); }

 private:
  nlohmann::json data_of(const peer::HttpRequest& request) const;

  support::Daemon daemon_;
  base::Endpoint endpoint_;
};

}  // namespace spoor::docs
