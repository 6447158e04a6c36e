#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/printable.h"
#include "cli/program/commands.h"
#include "cli/program/daemon_client.h"
#include "cli/program/format.h"
#include "scanner/store/usage_database.h"

namespace spoor::cli {
namespace {

using nlohmann::ordered_json;

struct Member {
  std::string node;  // empty: not known without a request to the URL
  std::string url;
  std::string source;
  std::string state;
};

struct Members {
  std::vector<Member> list;
  std::vector<std::string> problems;  // sources whose members are not known
};

// What the last scan knows: the names at the URLs, and the peers that it expects and no source lists.
void add_known(const config::Config& config, Members& members) {
  const auto file = scanner::UsageDatabase::file_in(config.node.data_dir);
  auto database = scanner::UsageDatabase::open_read_only(file);
  const auto book = database ? database->peers() : database.error();
  if (!book) {
    if (book.error().code != std::errc::no_such_file_or_directory)
      members.problems.push_back(book.error().message);
    return;
  }
  for (const auto& [id, peer] : *book) {
    if (!peer.is_expected() || id.name == config.node.name) continue;
    const auto listed = std::ranges::find(members.list, peer.home, &Member::url);
    // One that was never read has no home.
    if (!peer.home.empty() && listed != members.list.end()) {
      if (listed->node.empty()) listed->node = id.name;
      if (listed->node == id.name) continue;  // otherwise another node has its address
    }
    const bool is_read = peer.cycle != tracker::CycleId();
    members.list.push_back({id.name, peer.home, is_read ? "an earlier scan" : "another member",
                            fmt::format("expected, has not responded for {}", human_duration(peer.silent))});
  }
}

// As the sources of the daemon list them now.
Members find_members(const GlobalOptions& global, const config::Config& config) {
  auto daemon = or_fail(DaemonClient::create(global, std::chrono::minutes(1)), exit_usage);
  const auto listed = or_fail(daemon.exchange("GET", "/v1/members"));
  Members members;
  for (const auto& member : listed.at("members")) {
    members.list.push_back({text_or(member.at("node"), ""), text_or(member.at("url"), ""),
                            text_or(member.at("source"), ""), text_or(member.at("state"), "")});
  }
  for (const auto& problem : listed.at("problems")) members.problems.push_back(text_or(problem, ""));
  if (!global.url) add_known(config, members);
  return members;
}

ordered_json to_json(const Members& members) {
  ordered_json list = ordered_json::array();
  for (const Member& member : members.list) {
    list.push_back({{"node", member.node.empty() ? ordered_json(nullptr) : ordered_json(member.node)},
                    {"url", member.url},
                    {"source", member.source},
                    {"state", member.state}});
  }
  return {{"members", list}, {"problems", members.problems}};
}

int list(const GlobalOptions& global, bool as_json) {
  const Members members = find_members(global, or_fail(global.load_config(), exit_usage));
  if (as_json) {
    print_json(to_json(members));
  } else {
    Table table({"node", "url", "source", "state"}, {1, 2, 3});
    for (const Member& member : members.list) {
      table.add({member.node.empty() ? "?" : member.node, member.url, member.source, member.state});
    }
    print_text(table.to_string());
  }
  for (const std::string& problem : members.problems) print_error(base::printable(problem));
  return members.problems.empty() ? exit_done : exit_in_part;
}

void retire(const GlobalOptions& global, const std::string& name) {
  // It asks all members, then hands its marks to one of several.
  auto daemon = or_fail(DaemonClient::create(global, std::chrono::minutes(3)), exit_usage);
  const std::string query = name.empty() ? "" : "?node=" + url_encoded(name);
  const auto json = or_fail(daemon.exchange("POST", "/v1/retire" + query));
  const auto node = json.at("node").get<std::string>();
  for (const auto& silent : json.at("silent")) {
    print_error(fmt::format("a member did not say what it has read: its next scan may walk everything ({})",
                            base::printable(silent.get<std::string>())));
  }
  const auto& by = json.at("adopted_by");
  const std::string how =
      by.is_null() ? "retired before"
                   : fmt::format("retired: node '{}' has its marks", base::printable(by.get<std::string>()));
  print_text(
      fmt::format("'{}' has {}. Stop spoord there, and list it no longer; a restart begins a new member\n",
                  base::printable(node), how));
}

}  // namespace

void add_members_command(CLI::App& program, const GlobalOptions& global, int& code) {
  struct Flags {
    bool json = false;
    std::string member;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      program.add_subcommand("members", "Lists the members of the cluster that a scan of this node requests");
  command->add_flag("--json", flags->json, "Prints JSON");
  CLI::App* retirement = command->add_subcommand(
      "retire", "Retires this node: another member adopts its marks, and it acknowledges no more");
  add_value(*retirement, "NAME", flags->member, "NAME", "Its name, to be sure which node it is");
  retirement->callback([flags, &global] { retire(global, flags->member); });
  command->callback([command, flags, &global, &code] {
    if (!command->get_subcommands().empty()) return;
    code = list(global, flags->json);
  });
}

}  // namespace spoor::cli
