#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config.h"

namespace spoor::daemon {

// Settings that a running daemon takes over together. apply() is called at every reload, changed or not;
// where it gives false it has said why, and all stays as it was.
struct Reloadable {
  std::vector<std::string_view> keys;  // as config/settings.h has them; none: only what stands in files
  std::function<bool(const config::Config&)> apply;
};

// Takes over what a changed configuration file says, as far as that can be done while the daemon runs, and
// tells in the log what was done and what needs a restart.
//
// Not thread-safe.
class Reload {
 public:
  // `started` is the configuration that the daemon was started with.
  Reload(config::Config started, std::vector<Reloadable> settings);

  // What the file says now, or why it is no configuration: then nothing is changed.
  void apply(const base::Result<config::Config>& fresh);

  // The last file was no configuration, or not all of it could be taken over.
  bool failed() const { return failed_; }

 private:
  const config::Config started_;
  config::Config last_;  // the newest valid one
  const std::vector<Reloadable> settings_;
  bool failed_ = false;
};

}  // namespace spoor::daemon
