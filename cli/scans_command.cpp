#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/iso_time.h"
#include "cli/commands.h"
#include "cli/daemon_client.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "cli/scans_report.h"
#include "scanner/report_json.h"
#include "scanner/store/usage_database.h"

namespace spoor::cli {
namespace {

using nlohmann::ordered_json;

struct ScansFlags {
  std::size_t limit = 20;
  bool json = false;
};

base::Result<std::vector<scanner::ScanRecord>> read_scans(const config::Config& config, std::size_t limit) {
  auto database =
      scanner::UsageDatabase::open_read_only(scanner::UsageDatabase::file_in(config.node.data_dir));
  if (!database) return database.error();
  return database->scans(limit);
}

int print_scans_of_daemon(const GlobalOptions& global, const ScansFlags& flags) {
  auto daemon = DaemonClient::create(global);
  if (!daemon) return fail(exit_usage, daemon.error().message);
  const auto json = daemon->exchange("GET", fmt::format("/v1/scans?limit={}", flags.limit));
  if (!json) return fail(exit_failed, json.error().message);
  const auto scans = scanner::scans_from_json(*json);
  if (!scans) return fail(exit_failed, "the daemon's response: " + scans.error().message);
  if (flags.json) {
    print_exact(json->dump(2) + '\n');
  } else {
    print_text(scans_text(*scans));
  }
  return exit_done;
}

int run(const GlobalOptions& global, const ScansFlags& flags) {
  if (global.url) return print_scans_of_daemon(global, flags);
  const auto config = global.load_config();
  if (!config) return fail(exit_usage, config.error().message);
  const auto scans = read_scans(*config, flags.limit);
  if (!scans) return fail(exit_failed, scans.error().message);
  if (flags.json) {
    print_exact(scanner::scans_json(*scans).dump(2, ' ', false, ordered_json::error_handler_t::replace) +
                '\n');
  } else {
    print_text(scans_text(*scans));
  }
  return exit_done;
}

}  // namespace

void add_scans_command(CLI::App& program, const GlobalOptions& options, int& code) {
  auto flags = std::make_shared<ScansFlags>();
  CLI::App* command = program.add_subcommand("scans", "Shows the last scans of this node and their figures");
  command->add_option("--limit", flags->limit, "How many, the newest first")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Prints one JSON object");
  command->callback([flags, &options, &code] { code = run(options, *flags); });
}

}  // namespace spoor::cli
