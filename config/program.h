// What spoord, spoor-watch and spoor-publish have in common: their options, and how they end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file_system.h"
#include "config/config.h"

namespace spoor::config {

using Load = std::function<base::Result<Config>()>;

struct Program {
  struct Flag {
    std::string name;
    std::string help;
    bool* value;
  };

  std::string name;
  std::string version;  // printed for --version
  std::string description;
  std::string check_help;
  std::vector<Flag> flags = {};  // besides --check
  // Why there is nothing to do with this configuration; empty: there is. May be empty.
  std::function<std::string(const Config&)> refuse = {};
  // For --check: what is printed if the configuration can be used here; fails with the problems.
  std::function<base::Result<std::string>(const Config&)> check;
  int check_failed_code = 1;
  // Runs until a signal to stop. `load` reads the configuration again.
  std::function<base::Result<>(const Config&, const Load& load)> run;
};

// Returns the exit code: 0, 1 for a failure, and 2 for options or a configuration that cannot be used.
int run_program(int argc, char** argv, const Program& program);

// Fails if another process of the program has the lock, which is a file in node.data_dir.
base::Result<base::FileLock> lock_data_dir(const std::string& program, const std::filesystem::path& lock);

// Notifies the service manager, if there is one (sd_notify(3)).
void notify_manager(const std::string& state);

}  // namespace spoor::config
