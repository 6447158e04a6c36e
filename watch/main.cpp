// spoor-watch: marks what changes on the drives of one node, by events of the kernel.

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <systemd/sd-daemon.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/printable.h"
#include "base/standard_streams.h"
#include "base/stop_signals.h"
#include "base/version.h"
#include "config/derived.h"
#include "config/load.h"
#include "config/logging.h"
#include "watch/watcher.h"

namespace {

using namespace spoor;

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;
constexpr const char* program = "spoor-watch";
constexpr std::chrono::seconds status_interval_min{1};
constexpr std::chrono::seconds status_interval_max{10};

void notify(const std::string& state) { static_cast<void>(::sd_notify(0, state.c_str())); }

// At most half of what the service manager waits for (sd_watchdog_enabled(3)).
std::chrono::seconds status_interval() {
  std::uint64_t watchdog_us = 0;
  if (::sd_watchdog_enabled(0, &watchdog_us) <= 0) return status_interval_max;
  const auto half = std::chrono::floor<std::chrono::seconds>(std::chrono::microseconds(watchdog_us / 2));
  return std::clamp(half, status_interval_min, status_interval_max);
}

void serve(watch::Watcher& watcher, const base::StopSignals& signals) {
  std::string status = watcher.status_line();
  spdlog::info("{}", status);
  notify("READY=1\nSTATUS=" + status);
  const auto interval = status_interval();
  while (!signals.wait(interval)) {
    status = watcher.status_line();
    notify("WATCHDOG=1\nSTATUS=" + status);
  }
  spdlog::info("stops: marks what was read");
  notify("STOPPING=1");
}

base::Result<> watch_drives(const config::Config& config) {
  if (const auto daemon = config::own_endpoint(config); !daemon) return daemon.error();
  const auto lock = base::FileLock::try_acquire(config.node.data_dir / "watch.lock");
  if (!lock) return lock.error();
  if (!*lock)
    return base::Error(std::make_error_code(std::errc::device_or_resource_busy),
                       fmt::format("another spoor-watch runs on {}: stop it first",
                                   base::printable(config.node.data_dir.native())));
  const base::StopSignals signals;
  const base::SystemClock clock;
  watch::Watcher watcher(config, clock);
  serve(watcher, signals);
  return {};
}

int check_drives(const config::Config& config) {
  const auto problems = watch::check(config);
  if (problems.empty()) {
    fmt::print("the configuration is valid; drives that can be watched: {}\n",
               config::watched_drives(config).size());
    return 0;
  }
  config::print_failure(program, fmt::format("{}", fmt::join(problems, "\n")));
  return exit_failed;
}

int run(int argc, char** argv) {
  CLI::App app("Marks what changes on the drives of a storage node, by events of the kernel.", program);
  std::optional<std::filesystem::path> file;
  std::vector<std::string> overrides;
  bool check_only = false;
  app.add_option("--config", file, "The configuration file (default: /etc/spoor/spoor.json)")
      ->type_name("FILE");
  app.add_option("--set", overrides, "Overrides a setting: key=value with a dotted key; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_flag("--check", check_only,
               "Validates the configuration, tries whether each drive can be watched, and exits");
  app.set_version_flag("--version", base::version_text(program));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }
  const auto config = config::load(file, overrides);
  if (!config) {
    config::print_failure(program, config.error().message);
    return exit_usage;
  }
  if (config::watched_drives(*config).empty()) {
    config::print_failure(program,
                          "no drive is to be watched: set \"watch.drives\" to \"all\", or to a list");
    return exit_usage;
  }
  if (check_only) return check_drives(*config);
  config::set_up_logging(config->log);
  if (const auto done = watch_drives(*config); !done) {
    config::print_failure(program, config->log, done.error().message);
    return exit_failed;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  base::reserve_standard_streams();
  try {
    const int code = run(argc, argv);
    base::flush_standard_output();
    return code;
  } catch (const std::exception& error) {
    config::print_failure(program, error.what());
    return exit_failed;
  }
}
