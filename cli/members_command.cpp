#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <boost/url/encode.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/dns_source.h"
#include "base/printable.h"
#include "base/standard_streams.h"
#include "cli/commands.h"
#include "cli/daemon_client.h"
#include "cli/etcd_connection.h"
#include "cli/format.h"
#include "config/derived.h"
#include "peer/gather/cycle_exchange.h"
#include "peer/http/http_transport.h"
#include "peer/membership/dns_members.h"
#include "peer/membership/dns_resolver.h"
#include "peer/membership/etcd_registry.h"
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

Member to_member(const peer::RegistryEntry& entry) {
  return {entry.member.node, entry.member.url, "etcd", entry.is_alive ? "registered" : "not registered"};
}

base::Result<peer::Registry> read_registry(const config::Config& config, const base::Clock& clock) {
  const auto etcd = EtcdConnection::open(config, clock);
  if (!etcd) return etcd.error();
  return peer::read_registry((*etcd)->client, (*etcd)->location);
}

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
      continue;
    }
    const bool is_read = peer.cycle != tracker::CycleId();
    members.list.push_back({id.name, peer.home, is_read ? "an earlier scan" : "another member",
                            fmt::format("expected, has not responded for {}", human_duration(peer.silent))});
  }
}

Members find_members(const config::Config& config) {
  Members members;
  if (const auto own = config::own_endpoint(config)) {
    members.list.push_back({config.node.name, own->to_string(), "this node", "-"});
  }
  for (const base::Endpoint& endpoint : config.peers.static_endpoints) {
    members.list.push_back({"", endpoint.to_string(), "peers.static", "-"});
  }
  peer::DnsMembers dns(std::make_shared<peer::DnsResolver>(peer::DnsResolver::Options{
                           .servers = config.peers.dns_servers, .timeout = config.peers.timeout}),
                       {.names = config.peers.dns, .is_tls = config.peers.dns_tls});
  for (const peer::SourceListing& listing : dns.list()) {
    if (!listing.problem.empty())
      members.problems.push_back(fmt::format("{}: {}", listing.source, listing.problem));
    for (const std::string& url : listing.listed) members.list.push_back({"", url, listing.source, "-"});
  }
  if (config.peers.etcd) {
    const base::SystemClock clock;
    const auto registry = read_registry(config, clock);
    if (registry) {
      for (const peer::RegistryEntry& entry : registry->entries) members.list.push_back(to_member(entry));
    } else {
      members.problems.push_back("etcd: " + registry.error().message);
    }
  }
  add_known(config, members);
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
  const Members members = find_members(or_fail(global.load_config(), exit_usage));
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

// The entry of etcd with this name or URL, if it may be removed.
peer::RegistryEntry find_removable(const peer::Registry& registry, const std::string& name_or_url) {
  std::optional<peer::RegistryEntry> found;
  for (const peer::RegistryEntry& entry : registry.entries) {
    if (entry.member.node != name_or_url && entry.member.url != name_or_url) continue;
    if (found)
      throw Failure{exit_failed, fmt::format("'{}' has several entries: give the URL of one", name_or_url)};
    found = entry;
  }
  if (!found) {
    throw Failure{
        exit_failed,
        fmt::format("etcd lists no member '{}': see 'spoor members'. Remove a member of peers.static "
                    "or peers.dns there",
                    base::printable(name_or_url))};
  }
  if (found->is_alive) {
    throw Failure{
        exit_failed,
        fmt::format("'{}' is registered: stop spoord there first, and wait for peers.etcd.ttl", name_or_url)};
  }
  return *found;
}

bool is_confirmed(const peer::RegistryEntry& entry) {
  print_text(
      fmt::format("Removes '{}' ({}) from the members in etcd. Scans no longer request the marks "
                  "that only this node has: each node walks everything once instead, after "
                  "peers.forget_after.\nNo daemon responds "
                  "at its URL from here. If one runs there nevertheless, its marks are lost: stop it first.\n"
                  "Remove it? [y/N] ",
                  base::printable(entry.member.node), base::printable(entry.member.url)));
  base::flush_standard_output();
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

void remove(const GlobalOptions& global, const std::string& name_or_url, bool is_sure) {
  const auto config = or_fail(global.load_config(), exit_usage);
  if (!config.peers.etcd)
    throw Failure{exit_usage, "peers.etcd is not set: members are listed in the configuration"};
  const base::SystemClock clock;
  const auto etcd = or_fail(EtcdConnection::open(config, clock), exit_usage);
  const auto registry = or_fail(peer::read_registry(etcd->client, etcd->location));
  const auto entry = find_removable(registry, name_or_url);
  auto credentials = or_fail(peer_credentials(config.peers), exit_usage);
  // Only etcd lists the URL: any host could have registered it.
  if (!config.peers.token_to_all) {
    auto& trusted = credentials.trusted_urls.emplace();
    for (const base::Endpoint& endpoint : config.peers.static_endpoints) trusted.insert(endpoint.to_string());
  }
  peer::HttpTransport transport({.credentials = credentials, .timeout = config.peers.timeout});
  const std::string node = base::printable(entry.member.node);
  const std::string url = base::printable(entry.member.url);
  if (peer::is_running(transport, entry.endpoint, config.node.cluster, entry.member.node)) {
    throw Failure{exit_failed,
                  fmt::format("'{}' runs at {}, though it is not registered: it can't reach etcd, and still "
                              "acknowledges marks. Stop spoord there first",
                              node, url)};
  }
  if (!is_sure && ::isatty(STDIN_FILENO) != 1)
    throw Failure{exit_usage, "no terminal to confirm: give --yes"};
  if (!is_sure && !is_confirmed(entry)) throw Failure{exit_failed, "nothing was removed"};
  if (!or_fail(peer::evict_member(etcd->client, etcd->location, entry)))
    throw Failure{exit_failed, "the members in etcd changed meanwhile: nothing was removed, try again"};
  print_text(fmt::format("removed '{}' ({})\n", node, url));
}

void retire(const GlobalOptions& global, const std::string& name) {
  // It asks all members, then hands its marks to one of several.
  auto daemon = or_fail(DaemonClient::create(global, std::chrono::minutes(3)), exit_usage);
  const std::string query =
      name.empty() ? "" : "?node=" + boost::urls::encode(name, boost::urls::unreserved_chars);
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
    bool is_sure = false;
    std::string member;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      program.add_subcommand("members", "Lists the members of the cluster that a scan of this node requests");
  command->add_flag("--json", flags->json, "Prints JSON");
  CLI::App* removal = command->add_subcommand("remove", "Removes a member that does not come back from etcd");
  removal->add_option("MEMBER", flags->member, "Its node name, or its URL")->type_name("NAME")->required();
  removal->add_flag("--yes", flags->is_sure, "Does not ask for confirmation");
  removal->callback([flags, &global] {
    refuse_url(global, "members");
    remove(global, flags->member, flags->is_sure);
  });
  CLI::App* retirement = command->add_subcommand(
      "retire", "Retires this node: another member adopts its marks, and it acknowledges no more");
  retirement->add_option("NAME", flags->member, "Its name, to be sure which node it is")->type_name("NAME");
  retirement->callback([flags, &global] { retire(global, flags->member); });
  command->callback([command, flags, &global, &code] {
    if (!command->get_subcommands().empty()) return;
    refuse_url(global, "members");
    code = list(global, flags->json);
  });
}

}  // namespace spoor::cli
