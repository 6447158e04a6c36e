// spoor-publish: publishes the change feed of one node to the sinks of its configuration.

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <systemd/sd-daemon.h>

#include <CLI/CLI.hpp>
#include <chrono>
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
#include "config/load.h"
#include "config/logging.h"
#include "publish/service.h"
#include "scanner/feed/publish_record.h"

namespace {

using namespace spoor;

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;
constexpr const char* program = "spoor-publish";
constexpr std::chrono::seconds record_interval{10};

void notify(const std::string& state) { static_cast<void>(::sd_notify(0, state.c_str())); }

void write_record(const publish::Service& service, const config::Config& config) {
  base::PosixFileSystem files;
  const auto written = scanner::write_publish_record(files, config.node.data_dir, service.record());
  if (!written) spdlog::error("{}", written.error().message);
}

void serve(publish::Service& service, const config::Config& config, const base::StopSignals& signals) {
  service.start();
  std::string status = service.status_line();
  spdlog::info("{}", status);
  notify("READY=1\nSTATUS=" + status);
  do {
    write_record(service, config);
    const std::string now = service.status_line();
    if (now != status) notify("STATUS=" + now);
    status = now;
  } while (!signals.wait(record_interval));
  spdlog::info("stops: waits for the last request of each sink");
  notify("STOPPING=1");
}

base::Result<> publish_feed(const config::Config& config, bool once) {
  const auto lock = base::FileLock::try_acquire(scanner::publish_lock_file(config.node.data_dir));
  if (!lock) return lock.error();
  if (!*lock)
    return base::Error(std::make_error_code(std::errc::device_or_resource_busy),
                       fmt::format("another spoor-publish runs on {}: stop it first",
                                   base::printable(config.node.data_dir.native())));
  const base::SystemClock clock;
  const auto service = publish::Service::make(config, clock);
  if (!service) return service.error();
  if (!once) {
    const base::StopSignals signals;  // `once` ends at a signal: a kill loses nothing
    serve(**service, config, signals);
    return {};
  }
  const auto failures = (*service)->publish_once();
  write_record(**service, config);
  if (failures.empty()) return {};
  return base::Error(std::make_error_code(std::errc::io_error), fmt::format("{}", fmt::join(failures, "\n")));
}

int run(int argc, char** argv) {
  CLI::App app("Publishes the change feed of a storage node as CloudEvents.", program);
  std::optional<std::filesystem::path> file;
  std::vector<std::string> overrides;
  bool check_only = false;
  bool once = false;
  app.add_option("--config", file, "The configuration file (default: /etc/spoor/spoor.json)")
      ->type_name("FILE");
  app.add_option("--set", overrides, "Overrides a setting: key=value with a dotted key; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_flag("--check", check_only, "Validates the configuration and reads the secrets, and exits");
  app.add_flag("--once", once, "Publishes what scans have found so far, and exits");
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
  if (config->publish.sinks.empty()) {
    config::print_failure(program, "there is no sink to publish to: set \"publish.sinks\"");
    return exit_usage;
  }
  if (check_only) {
    const base::SystemClock clock;
    const auto service = publish::Service::make(*config, clock);
    if (service) fmt::print("the configuration is valid, with {} sinks\n", config->publish.sinks.size());
    if (!service) config::print_failure(program, service.error().message);
    return service ? 0 : exit_failed;
  }
  config::set_up_logging(config->log);
  if (const auto done = publish_feed(*config, once); !done) {
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
