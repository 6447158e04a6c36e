#include <fmt/core.h>

#include <memory>
#include <string>

#include "base/clock.h"
#include "cli/doctor.h"
#include "cli/program/commands.h"
#include "cli/program/format.h"
#include "cli/setup/node_files.h"
#include "config/derived.h"
#include "config/load.h"

namespace spoor::cli {
namespace {

// `spoor` with the options that this call was given, for the commands of the fixes.
std::string command_with(const GlobalOptions& global) {
  std::string command = "spoor";
  const auto add = [&](const char* option, const std::string& value) {
    command += fmt::format(" {} {}", option, shell_quoted(value));
  };
  if (global.config_file) add("--config", global.config_file->native());
  for (const std::string& setting : global.overrides) add("--set", setting);
  if (global.url) add("--url", *global.url);
  if (!global.token_file.empty()) add("--token-file", global.token_file.native());
  if (!global.ca.empty()) add("--ca", global.ca.native());
  return command;
}

int run(const GlobalOptions& global, bool as_json) {
  Facts facts;
  facts.config = or_fail(global.load_config(), exit_usage);
  facts.config_file = global.config_file ? global.config_file->native() : std::string(config::default_file);
  facts.spoor = command_with(global);
  facts.is_set_up = is_configured(facts.config_file);
  facts.own_rules_digest = config::namespace_rules(facts.config).digest();
  collect_files(facts);  // first: a process with one thread starts its children
  collect_settings(facts);
  or_fail(ask_daemon(global, facts), exit_usage);
  ask_peers(global, facts);
  facts.now = base::SystemClock().wall_now();
  const Examination examination = examine(facts);
  if (as_json) {
    print_json(examination_json(examination));
  } else {
    print_text(examination_text(examination));
  }
  if (!examination.problems.empty()) return exit_failed;
  return examination.is_whole() ? exit_done : exit_in_part;
}

}  // namespace

void add_doctor_command(CLI::App& program, const GlobalOptions& global, int& code) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command =
      program.add_subcommand("doctor", "Examines this node: what is wrong, why it matters, what fixes it");
  command->add_flag("--json", *as_json, "Prints one JSON object");
  command->callback([as_json, &global, &code] { code = run(global, *as_json); });
}

}  // namespace spoor::cli
