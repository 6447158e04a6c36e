// spoor-watch: marks what changes on the drives of one node, by events of the kernel.

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/data_dir.h"
#include "base/stop_signals.h"
#include "base/version.h"
#include "config/derived.h"
#include "config/program.h"
#include "watch/watcher.h"

namespace {

using namespace spoor;

constexpr const char* program = "spoor-watch";
constexpr std::chrono::seconds status_interval_min{1};
constexpr std::chrono::seconds status_interval_max{10};

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
  config::notify_manager("READY=1\nSTATUS=" + status);
  const auto interval = status_interval();
  while (!signals.wait(interval)) {
    status = watcher.status_line();
    config::notify_manager("WATCHDOG=1\nSTATUS=" + status);
  }
  spdlog::info("stops: marks what was read");
  config::notify_manager("STOPPING=1");
}

base::Result<> watch_drives(const config::Config& config) {
  if (const auto daemon = config::own_endpoint(config); !daemon) return daemon.error();
  const auto lock = config::lock_data_dir(program, config.node.data_dir / base::data_dir::watch_lock);
  if (!lock) return lock.error();
  const base::StopSignals signals;
  const base::SystemClock clock;
  watch::Watcher watcher(config, clock);
  serve(watcher, signals);
  return {};
}

base::Result<std::string> check_drives(const config::Config& config) {
  const auto problems = watch::check(config);
  if (problems.empty()) {
    return fmt::format("the configuration is valid; drives that can be watched: {}",
                       config::watched_drives(config).size());
  }
  return base::Error(std::make_error_code(std::errc::invalid_argument),
                     fmt::format("{}", fmt::join(problems, "\n")));
}

std::string refuse(const config::Config& config) {
  return config::watched_drives(config).empty()
             ? "no drive is to be watched: set \"watch.drives\" to \"all\", or to a list"
             : "";
}

}  // namespace

int main(int argc, char** argv) {
  return config::run_program(
      argc, argv,
      {.name = program,
       .version = base::version_text(program),
       .description = "Marks what changes on the drives of a storage node, by events of the kernel.",
       .check_help = "Validates the configuration, tries whether each drive can be watched, and exits",
       .refuse = refuse,
       .check = check_drives,
       .run = [](const config::Config& config, const config::Load&) { return watch_drives(config); }});
}
