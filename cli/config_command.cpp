#include <fmt/core.h>

#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "config/print.h"

namespace spoor::cli {

void add_config_command(CLI::App& program, const GlobalOptions& options, int& code) {
  CLI::App* command = program.add_subcommand("config", "Shows or checks the configuration");
  command->require_subcommand(1);
  auto as_json = std::make_shared<bool>(false);
  CLI::App* show =
      command->add_subcommand("show", "Prints the effective configuration, defaults and --set included");
  show->add_flag("--json", *as_json, "It is JSON in any case");
  show->callback([as_json, &options, &code] {
    const auto config = options.load_config();
    code = config ? exit_done : fail(exit_usage, config.error().message);
    if (config) fmt::print("{}", config::to_json_text(*config));
  });
  CLI::App* check = command->add_subcommand("check", "Says what is wrong with it, if anything");
  check->add_flag("--json", *as_json, "Prints one JSON object");
  check->callback([as_json, &options, &code] {
    const auto config = options.load_config();
    code = config ? exit_done : fail(exit_usage, config.error().message);
    if (config) fmt::print("{}\n", *as_json ? R"({"valid":true})" : "the configuration is valid");
  });
}

}  // namespace spoor::cli
