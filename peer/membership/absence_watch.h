#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "peer/membership/etcd_registry.h"

namespace spoor::peer {

// How long each member in the registry has not been alive, as this watcher has observed. Time between
// observations counts only up to `step_max`, so that an outage of etcd makes no member absent.
//
// Pure and not thread-safe.
class AbsenceWatch {
 public:
  AbsenceWatch(std::chrono::nanoseconds limit, std::chrono::nanoseconds step_max)
      : limit_(limit), step_max_(step_max) {}

  // Records one observation and returns the members absent for longer than the limit. A write of the entry in
  // between restarts its time.
  std::vector<RegistryEntry> look(std::span<const RegistryEntry> registry, base::SteadyTime now);

 private:
  struct Absence {
    std::int64_t mod_revision = 0;
    std::chrono::nanoseconds length{};
  };

  const std::chrono::nanoseconds limit_;
  const std::chrono::nanoseconds step_max_;
  std::optional<base::SteadyTime> last_look_;
  std::map<std::string, Absence> absences_;  // by node and URL
};

}  // namespace spoor::peer
