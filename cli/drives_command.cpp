#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/program/commands.h"
#include "cli/program/daemon_client.h"
#include "cli/program/format.h"

namespace spoor::cli {
namespace {

using nlohmann::ordered_json;

std::string drives_text(const ordered_json& drives) {
  Table table({"drive", "identity", "state"}, {0, 1, 2});
  for (const auto& drive : drives) {
    table.add({drive.at("path").get<std::string>(), text_or(drive.at("id"), "none yet"),
               drive.at("ok").get<bool>() ? "ok" : text_or(drive.at("error"), "failed")});
  }
  return table.to_string();
}

void ask(const GlobalOptions& global, const std::string& method, const std::string& target, bool as_json) {
  // The daemon writes to the drive before it responds to `accept`.
  auto daemon = or_fail(DaemonClient::create(global, std::chrono::minutes(1)), exit_usage);
  const auto json = or_fail(daemon.exchange(method, target));
  if (as_json) return print_json(json);
  print_text(drives_text(json.at("drives")));
}

}  // namespace

void add_drives_command(CLI::App& program, const GlobalOptions& global) {
  struct Flags {
    bool json = false;
    std::string path;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command = program.add_subcommand("drives", "Shows the drives, their identity and state");
  command->add_flag("--json", flags->json, "Prints JSON");
  CLI::App* accept = command->add_subcommand("accept", "Accepts what is now at a drive's path as the drive");
  add_value(*accept, "PATH", flags->path, "DIR", "The drive, as in the configuration")->required();
  accept->callback([flags, &global] {
    ask(global, "POST", "/v1/drives/accept?path=" + url_encoded(flags->path), flags->json);
  });
  command->callback([command, flags, &global] {
    if (command->get_subcommands().empty()) ask(global, "GET", "/v1/drives", flags->json);
  });
}

}  // namespace spoor::cli
