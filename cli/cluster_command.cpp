#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/printable.h"
#include "cli/program/commands.h"
#include "cli/program/daemon_client.h"
#include "cli/program/format.h"

namespace spoor::cli {
namespace {

using nlohmann::ordered_json;

std::string figure(const ordered_json& node, const char* name, std::string (*show)(std::uint64_t)) {
  const auto found = node.find(name);
  return found == node.end() || !found->is_number_unsigned() ? "-" : show(found->get<std::uint64_t>());
}

std::string age_of(const ordered_json& node, base::WallTime now) {
  const auto at = base::parse_iso_time(text_or(node.at("as_of"), ""));
  return at ? human_duration(std::max(now - *at, std::chrono::nanoseconds(0))) : "-";
}

// The members of the daemon, by URL: their state and the source that lists them.
std::map<std::string, ordered_json> members_by_url(const ordered_json& listed) {
  std::map<std::string, ordered_json> members;
  for (const auto& member : listed.at("members")) members[text_or(member.at("url"), "")] = member;
  return members;
}

// The daemon may have asked it last before it went down.
std::string state_of(const ordered_json& member, bool has_totals) {
  std::string state = text_or(member.at("state"), "?");
  return state == "up" && !has_totals ? "no totals" : state;
}

// Each node with its totals, and those of all.
int show_nodes(const GlobalOptions& global, bool as_json) {
  auto daemon = or_fail(DaemonClient::create(global, cluster_timeout), exit_usage);
  const auto listed = or_fail(daemon.exchange("GET", "/v1/members"));
  const auto usage = or_fail(daemon.exchange("GET", "/v1/usage?scope=cluster&depth=0&absent=empty"));
  const auto members = members_by_url(listed);
  const base::WallTime now = base::SystemClock().wall_now();
  ordered_json nodes = ordered_json::array();
  Table table({"node", "state", "size", "files", "scan age", "url", ""}, {1, 5, 6});
  bool is_whole = listed.at("problems").empty() && usage.at("unknown_sources").empty();
  for (ordered_json node : usage.at("nodes")) {
    const std::string url = text_or(node.at("url"), "");
    const auto member = members.find(url);
    const bool is_ok = node.at("ok").get<bool>();
    is_whole = is_whole && is_ok;
    const bool is_own =
        url.empty() && text_or(node.at("name"), "") == text_or(usage.at("node").at("name"), "");
    const std::string state = is_own                    ? "this node"
                              : member == members.end() ? (is_ok ? "up" : "not a member")
                                                        : state_of(member->second, is_ok);
    std::string problem = base::printable(text_or(node.at("error"), ""));
    if (node.value("last_known", false)) problem.insert(0, "as it was last: ");
    if (is_ok && !node.at("complete").get<bool>()) problem = "changes are pending";
    node["state"] = state;
    table.add({text_or(node.at("name"), "?"), state, figure(node, "bytes", human_bytes),
               figure(node, "files", with_commas), age_of(node, now), url, problem});
    nodes.push_back(std::move(node));
  }
  table.add({"(all)", "", figure(usage, "bytes", human_bytes), figure(usage, "files", with_commas),
             age_of(usage, now), "", is_whole ? "" : "incomplete"});
  if (as_json) {
    print_json({{"nodes", nodes},
                {"files", usage.at("files")},
                {"bytes", usage.at("bytes")},
                {"as_of", usage.at("as_of")},
                {"complete", usage.at("complete")},
                {"problems", listed.at("problems")}});
  } else {
    print_text(table.to_string());
  }
  for (const auto& problem : listed.at("problems")) print_error(base::printable(text_or(problem, "")));
  return is_whole ? exit_done : exit_in_part;
}

}  // namespace

void add_cluster_command(CLI::App& program, const GlobalOptions& options, int& code) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = program.add_subcommand(
      "cluster", "Shows all nodes: their state, size, the age of their totals, and their problems");
  command->footer("Exit codes: 0 done; 1 failed; 2 wrong usage or configuration; 3 a node did not report.");
  command->add_flag("--json", *as_json, "Prints one JSON object");
  command->callback([as_json, &options, &code] { code = show_nodes(options, *as_json); });
}

}  // namespace spoor::cli
