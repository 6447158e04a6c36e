#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "peer/etcd_roll.h"

namespace spoor::peer {

// For how long each member on the roll has not been alive, as far as this watcher has seen: time in which
// it did not look does not count, so that an outage of etcd makes nobody absent.
//
// Pure and not thread-safe.
class AbsenceWatch {
 public:
  // Between two looks no more than `step_max` counts.
  AbsenceWatch(std::chrono::nanoseconds limit, std::chrono::nanoseconds step_max)
      : limit_(limit), step_max_(step_max) {}

  // Takes a look; gives those absent for longer than the limit. Whose entry changed was there in between.
  std::vector<RollEntry> look(std::span<const RollEntry> roll, base::SteadyTime now);

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
