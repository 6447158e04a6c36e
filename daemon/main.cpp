// spoord: the daemon of one node.

#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/printable.h"
#include "base/standard_streams.h"
#include "base/version.h"
#include "config/load.h"
#include "config/logging.h"
#include "daemon/daemon.h"

namespace {

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

int run(int argc, char** argv) {
  CLI::App app("The change-tracking daemon of a storage node.", "spoord");
  std::optional<std::filesystem::path> file;
  std::vector<std::string> overrides;
  bool check_only = false;
  app.add_option("--config", file, "The configuration file (default: /etc/spoor/spoor.json)")
      ->type_name("FILE");
  app.add_option("--set", overrides, "Overrides a setting: key=value with a dotted key; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_flag("--check", check_only, "Validates the configuration and exits");
  app.set_version_flag("--version", spoor::base::version_text("spoord"));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }

  const auto load = [&] { return spoor::config::load(file, overrides); };
  const auto config = load();
  if (!config) {
    spoor::config::print_failure("spoord", config.error().message);
    return exit_usage;
  }
  if (check_only) {
    const auto problems = spoor::daemon::check(*config);
    for (const std::filesystem::path& drive : config->drives) {
      std::error_code failure;
      if (!std::filesystem::is_directory(drive, failure))
        fmt::print(stderr,
                   "spoord: warning: drives: there is no directory {} now: mount it, or correct the path\n",
                   spoor::base::printable(drive.native()));
    }
    if (problems.empty()) {
      fmt::print("the configuration is valid\n");
      return 0;
    }
    spoor::config::print_failure("spoord", fmt::format("{}", fmt::join(problems, "\n")));
    return exit_usage;
  }
  spoor::config::set_up_logging(config->log);
  if (const auto done = spoor::daemon::run(*config, load, std::string(spoor::base::version())); !done) {
    spoor::config::print_failure("spoord", config->log, done.error().message);
    return exit_failed;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  spoor::base::reserve_standard_streams();
  // Larger buffers return to the system when they are freed. By default, each that is freed raises this, up
  // to 32 MiB, and each thread that uses the heap keeps twice as much: large bodies took 200 MiB.
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
  try {
    const int code = run(argc, argv);
    spoor::base::flush_standard_output();
    return code;
  } catch (const std::exception& error) {
    spoor::config::print_failure("spoord", error.what());
    return exit_failed;
  }
}
