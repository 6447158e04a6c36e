// spoor-publish: publishes the change feed of one node to the sinks of its configuration.

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <string>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/stop_signals.h"
#include "base/version.h"
#include "config/program.h"
#include "publish/service.h"
#include "scanner/feed/publish_record.h"

namespace {

using namespace spoor;

constexpr const char* program = "spoor-publish";
constexpr std::chrono::seconds record_interval{10};

void write_record(const publish::Service& service, const config::Config& config) {
  base::PosixFileSystem files;
  const auto written = scanner::write_publish_record(files, config.node.data_dir, service.record());
  if (!written) spdlog::error("{}", written.error().message);
}

void serve(publish::Service& service, const config::Config& config, const base::StopSignals& signals) {
  service.start();
  std::string status = service.status_line();
  spdlog::info("{}", status);
  config::notify_manager("READY=1\nSTATUS=" + status);
  do {
    write_record(service, config);
    const std::string now = service.status_line();
    if (now != status) config::notify_manager("STATUS=" + now);
    status = now;
  } while (!signals.wait(record_interval));
  spdlog::info("stops: waits for the last request of each sink");
  config::notify_manager("STOPPING=1");
}

base::Result<> publish_feed(const config::Config& config, bool once) {
  const auto lock = config::lock_data_dir(program, scanner::publish_lock_file(config.node.data_dir));
  if (!lock) return lock.error();
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

base::Result<std::string> check(const config::Config& config) {
  const base::SystemClock clock;
  const auto service = publish::Service::make(config, clock);
  if (!service) return service.error();
  return fmt::format("the configuration is valid, with {} sinks", config.publish.sinks.size());
}

std::string refuse(const config::Config& config) {
  return config.publish.sinks.empty() ? "there is no sink to publish to: set \"publish.sinks\"" : "";
}

}  // namespace

int main(int argc, char** argv) {
  bool once = false;
  return config::run_program(
      argc, argv,
      {.name = program,
       .version = base::version_text(program),
       .description = "Publishes the change feed of a storage node as CloudEvents.",
       .check_help = "Validates the configuration and reads the secrets, and exits",
       .flags = {{"--once", "Publishes what scans have found so far, and exits", &once}},
       .refuse = refuse,
       .check = check,
       .run = [&once](const config::Config& config, const config::Load&) {
         return publish_feed(config, once);
       }});
}
