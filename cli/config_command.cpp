#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "config/print.h"

namespace spoor::cli {

void add_config_command(CLI::App& program, const GlobalOptions& options, int& code) {
  CLI::App* command = program.add_subcommand("config", "Shows or checks the configuration");
  command->require_subcommand(1);
  command->add_subcommand("show", "Prints the effective configuration, defaults and --set included")
      ->callback([&options, &code] {
        const auto config = options.load_config();
        code = config ? exit_done : fail(exit_usage, config.error().message);
        if (config) fmt::print("{}", config::to_json_text(*config));
      });
  command->add_subcommand("check", "Says what is wrong with it, if anything")->callback([&options, &code] {
    const auto config = options.load_config();
    code = config ? exit_done : fail(exit_usage, config.error().message);
    if (config) fmt::print("the configuration is valid\n");
  });
}

}  // namespace spoor::cli
