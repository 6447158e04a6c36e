#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/program/commands.h"
#include "cli/program/daemon_client.h"
#include "cli/program/format.h"
#include "cli/scan/scan_report.h"
#include "scanner/report_json.h"

namespace spoor::cli {
namespace {

struct ScansFlags {
  std::size_t limit = 20;
  bool json = false;
};

void print_scans_of_daemon(const GlobalOptions& global, const ScansFlags& flags) {
  auto daemon = or_fail(DaemonClient::create(global), exit_usage);
  const auto json = or_fail(daemon.exchange("GET", fmt::format("/v1/scans?limit={}", flags.limit)));
  const auto scans = scanner::scans_from_json(json);
  if (!scans) throw Failure{exit_failed, "the daemon's response: " + scans.error().message};
  if (flags.json) return print_json(json);
  print_text(scans_text(*scans));
}

void run(const GlobalOptions& global, const ScansFlags& flags) {
  if (global.url) return print_scans_of_daemon(global, flags);
  const auto config = or_fail(global.load_config(), exit_usage);
  auto database = open_database(config);
  const auto scans = or_fail(database.scans(flags.limit));
  if (flags.json) return print_json(scanner::scans_json(scans));
  print_text(scans_text(scans));
}

}  // namespace

void add_scans_command(CLI::App& program, const GlobalOptions& options) {
  auto flags = std::make_shared<ScansFlags>();
  CLI::App* command = program.add_subcommand("scans", "Shows the last scans of this node and their figures");
  add_value(*command, "--limit", flags->limit, "N", "How many, the newest first")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Prints one JSON object");
  command->callback([flags, &options] { run(options, *flags); });
}

}  // namespace spoor::cli
