#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config.h"

namespace spoor::daemon {

// Settings that a running daemon applies together. apply() is called at every reload, changed or not. If it
// returns false, it has logged the reason and changed nothing.
struct Reloadable {
  std::vector<std::string_view> keys;  // as in config/settings.h; none: only files are read again
  std::function<bool(const config::Config&)> apply;
};

// Applies a changed configuration file as far as possible without a restart, and logs which settings were
// applied and which need a restart.
//
// Not thread-safe.
class Reload {
 public:
  // `started` is the configuration that the daemon was started with.
  Reload(config::Config started, std::vector<Reloadable> settings);

  // `fresh`: the configuration in the file now, or the error of loading it. After an error, changes nothing.
  void apply(const base::Result<config::Config>& fresh);

  // Whether the last file was invalid, or some of its settings could not be applied.
  bool failed() const { return failed_; }

 private:
  const config::Config started_;
  config::Config last_;  // the newest that was applied completely
  const std::vector<Reloadable> settings_;
  bool failed_ = false;
};

}  // namespace spoor::daemon
