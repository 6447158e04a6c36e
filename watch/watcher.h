#pragma once

#include <deque>
#include <string>
#include <vector>

#include "base/clock.h"
#include "config/config.h"

namespace spoor::watch {

// Why drives cannot be watched, one sentence each; empty if all can be. Watches none of them.
std::vector<std::string> check(const config::Config& config);

// Watches the drives of the configuration, each on its own thread: a disk that hangs delays no other one.
//
// Not thread-safe.
class Watcher {
 public:
  // Continues what an earlier process of the same service left. The references must outlive it.
  Watcher(const config::Config& config, const base::Clock& clock);
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  // Marks what was read, for some seconds at most; what is not marked by then is a gap at the next start.
  ~Watcher();

  // "watching 2 of 3 drives".
  std::string status_line() const;

 private:
  class Drive;

  std::deque<Drive> drives_;
};

}  // namespace spoor::watch
