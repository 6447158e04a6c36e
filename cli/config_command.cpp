#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "config/print.h"
#include "config/validate.h"

namespace spoor::cli {
namespace {

int check_drives(const config::Config& config) {
  const auto overlaps = config::find_drive_overlaps(config);
  return overlaps.empty() ? exit_done : fail(exit_usage, fmt::format("{}", fmt::join(overlaps, "\n")));
}

}  // namespace

void add_config_command(CLI::App& program, const GlobalOptions& options, int& code) {
  CLI::App* command = program.add_subcommand("config", "Shows or checks the configuration");
  command->require_subcommand(1);
  auto as_json = std::make_shared<bool>(false);
  CLI::App* show =
      command->add_subcommand("show", "Prints the effective configuration, defaults and --set included");
  show->add_flag("--json", *as_json, "No effect: the output is always JSON");
  show->callback([as_json, &options, &code] {
    if (refuse_url(options, "config")) return void(code = exit_usage);
    const auto config = options.load_config();
    code = config ? exit_done : fail(exit_usage, config.error().message);
    if (config) print_exact(config::to_json_text(*config));
  });
  CLI::App* check = command->add_subcommand("check", "Reports errors in the configuration");
  check->add_flag("--json", *as_json, "Prints one JSON object");
  check->callback([as_json, &options, &code] {
    if (refuse_url(options, "config")) return void(code = exit_usage);
    const auto config = options.load_config();
    code = config ? check_drives(*config) : fail(exit_usage, config.error().message);
    if (code == exit_done) print_exact(*as_json ? "{\"valid\":true}\n" : "the configuration is valid\n");
  });
}

}  // namespace spoor::cli
