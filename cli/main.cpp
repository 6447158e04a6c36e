// spoor: the command line.

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <exception>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/standard_streams.h"
#include "base/version.h"
#include "cli/program/commands.h"
#include "cli/program/format.h"
#include "config/problem.h"

namespace {

using namespace spoor::cli;

void group_commands(CLI::App& program) {
  constexpr std::pair<const char*, std::array<const char*, 4>> groups[] = {
      {"Where the space is, and what changed", {"usage", "cluster", "changes", "scans"}},
      {"The cycle of work", {"mark", "scan"}},
      {"State and repair", {"status", "doctor", "members", "drives"}},
      {"Configuration, and what is in a file", {"setup", "config", "inspect"}},
  };
  for (const auto& [group, names] : groups) {
    for (const char* const name : names) {
      if (name != nullptr) program.get_subcommand(name)->group(group);
    }
  }
  program.footer(
      "Examples:\n"
      "  spoor usage -d 2                       where the space is\n"
      "  spoor usage --since 7d --sort growth   what grew in a week\n"
      "  spoor cluster                          all nodes\n"
      "  spoor doctor                           what is wrong, and how to repair it\n"
      "'spoor COMMAND --help' and the manual page spoor-COMMAND(1) describe each command.");
}

// Empty if a command was given that is known.
std::string unknown_command(const CLI::App& program) {
  const auto rest = program.remaining();
  if (!program.get_subcommands().empty() || rest.empty() || rest.front().starts_with('-')) return {};
  std::vector<std::string_view> names;
  for (const CLI::App* const command : program.get_subcommands([](const CLI::App*) { return true; }))
    names.emplace_back(command->get_name());
  return fmt::format("there is no command '{}': did you mean '{}'? See spoor --help",
                     spoor::base::printable(rest.front()), spoor::config::nearest_key(rest.front(), names));
}

int run(int argc, char** argv) {
  CLI::App program("Change tracking for storage nodes: marks, scans, usage.", "spoor");
  GlobalOptions options;
  int code = exit_done;
  add_value(program, "--config", options.config_file, "FILE",
            "The configuration (default: /etc/spoor/spoor.json)");
  add_value(program, "--set", options.overrides, "KEY=VALUE",
            "Overrides a setting: key=value, the key dotted; repeatable")
      ->allow_extra_args(false);
  add_value(program, "--url", options.url, "URL",
            "The daemon to connect to: http(s)://host:port or unix:/path (default: from the configuration)");
  add_value(program, "--token-file", options.token_file, "FILE",
            "File with the token to send to the daemon (default: peers.token_file)");
  add_value(program, "--ca", options.ca, "FILE",
            "The trusted certificate authorities for https, in PEM (default: peers.tls.ca)");
  program.set_version_flag("--version", spoor::base::version_text("spoor"));
  program.require_subcommand(0, 1);  // a missing command is reported below; CLI11 reports an unknown one
  program.fallthrough();             // accepts the options above after the command, too
  add_mark_command(program, options, code);
  add_scan_command(program, options, code);
  add_scans_command(program, options);
  add_status_command(program, options, code);
  add_usage_command(program, options, code);
  add_cluster_command(program, options, code);
  add_changes_command(program, options);
  add_inspect_command(program, options, code);
  add_members_command(program, options, code);
  add_drives_command(program, options);
  add_doctor_command(program, options, code);
  add_setup_command(program, options);
  add_config_command(program, options);
  group_commands(program);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream help;
    std::ostringstream message;  // it quotes arguments, which may be names of files that a shell found
    if (program.exit(error, help, message) == 0) {
      print_text(help.str());
      return exit_done;
    }
    if (program.remaining().size() == 1 && program.remaining().front() == "help") {
      print_text(program.help());
      return exit_done;
    }
    if (const auto unknown = unknown_command(program); !unknown.empty()) return fail(exit_usage, unknown);
    const std::string text = message.str();
    return fail(exit_usage, text.substr(0, text.find_last_not_of('\n') + 1));
  }
  if (program.get_subcommands().empty()) {
    print_text(program.help());
    return fail(exit_usage, "no command given");
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  spoor::base::reserve_standard_streams();
  try {
    const int code = run(argc, argv);
    spoor::base::flush_standard_output();
    return code;
  } catch (const Failure& failure) {
    return fail(failure.code, failure.message);
  } catch (const nlohmann::json::exception& error) {
    return fail(exit_failed,
                std::string("the daemon's response is not of the expected form: ") + error.what());
  } catch (const std::exception& error) {
    return fail(exit_failed, error.what());
  }
}
