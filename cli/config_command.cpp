#include <fmt/format.h>

#include <memory>

#include "cli/program/commands.h"
#include "cli/program/format.h"
#include "config/derived.h"
#include "config/load.h"

namespace spoor::cli {

void add_config_command(CLI::App& program, const GlobalOptions& options) {
  CLI::App* command = program.add_subcommand("config", "Shows or checks the configuration");
  command->require_subcommand(1);
  auto as_json = std::make_shared<bool>(false);
  CLI::App* show =
      command->add_subcommand("show", "Prints the effective configuration, defaults and --set included");
  show->add_flag("--json", *as_json, "No effect: the output is always JSON");
  show->callback([&options] {
    refuse_url(options, "config");
    print_exact(config::to_json_text(or_fail(options.load_config(), exit_usage)));
  });
  CLI::App* check = command->add_subcommand("check", "Reports errors in the configuration");
  check->add_flag("--json", *as_json, "Prints one JSON object");
  check->callback([as_json, &options] {
    refuse_url(options, "config");
    const auto overlaps = config::find_drive_overlaps(or_fail(options.load_config(), exit_usage));
    if (!overlaps.empty()) throw_failure(exit_usage, "{}", fmt::join(overlaps, "\n"));
    print_exact(*as_json ? "{\"valid\":true}\n" : "the configuration is valid\n");
  });
}

}  // namespace spoor::cli
