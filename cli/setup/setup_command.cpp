#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/endpoint.h"
#include "base/printable.h"
#include "base/standard_streams.h"
#include "cli/program/commands.h"
#include "cli/program/daemon_client.h"
#include "cli/program/format.h"
#include "cli/setup/authority.h"
#include "cli/setup/invitation.h"
#include "cli/setup/setup_node.h"
#include "config/load.h"
#include "peer/http/credentials.h"

namespace spoor::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::size_t token_bytes = 32;

// The certificate authority of this node, which can issue.
KeyAndCertificate read_authority(const NodeFiles& files) {
  if (!fs::exists(files.ca_key)) {
    throw_failure(exit_usage, "{} is not here: run this on the node that made the authority",
                  base::printable(files.ca_key.native()));
  }
  KeyAndCertificate authority{read_text(files.ca_key), read_text(files.ca)};
  or_fail(issue(authority, make_request(make_key()), {"check", "0.0.0.0"}, base::SystemClock().wall_now()));
  return authority;
}

const config::Listener& listener_of(const config::Config& config) {
  const auto found =
      std::ranges::find_if(config.listen, [](const auto& each) { return each.tls.has_value(); });
  if (found == config.listen.end() || !config.peers.tls)
    throw Failure{exit_usage, "this node has no TLS, by which others could join it: see spoor-setup(1)"};
  return *found;
}

// The answer to a node that joins, which the configuration of this one then lists.
class Admission {
 public:
  Admission(const GlobalOptions& global, const NodeFiles& files, const config::Config& config,
            std::string address)
      : global_(global),
        files_(files),
        config_(config),
        address_(std::move(address)),
        authority_(read_authority(files)) {
    static_cast<void>(peers_of_daemon());  // it has to run
  }

  base::Result<ordered_json> admit(const ordered_json& request, const std::string& from) {
    const auto text = [&](const char* name) { return text_or(request.value(name, ordered_json()), ""); };
    const NodeNames names{text("name"), text("address")};
    if (const auto why = why_not(names, from); !why.empty()) return invalid(why);
    auto certificate = issue(authority_, text("request"), names, base::SystemClock().wall_now());
    if (!certificate) return certificate.error();
    name_ = names.name;
    url_ = url_of(names.address);
    std::vector<std::string> peers;
    for (const auto& peer : config_.peers.static_endpoints) add_once(peers, peer.to_string());
    has_others_ = peers.size() > (std::ranges::find(peers, url_) != peers.end() ? 1U : 0U);
    // Before the node has its response: a node that is listed and has not joined is seen, as it is down.
    is_new_ = std::ranges::find(peers, url_) == peers.end();
    if (is_new_) listed_ = list_peer(files_, url_);
    add_once(peers, url_);
    add_once(peers, url_of(address_, listener_of(config_).port));
    const ordered_json all = ordered_json::parse(config::to_json_text(config_));
    return ordered_json{{"certificate", *certificate},
                        {"authority", authority_.certificate},
                        {"cluster", config_.node.cluster},
                        {"namespace", all.at("namespace")},
                        {"peers", peers}};
  }

  void finish() const {
    print_text(fmt::format("'{}' ({}) has joined\n", name_, url_));
    if (!is_new_) return;
    if (has_others_) print_text(fmt::format("on each other node: spoor setup --add-peer {}\n", url_));
    or_fail(listed_);
    reload_daemon(files_);
  }

 private:
  ordered_json peers_of_daemon() const {
    auto daemon = or_fail(DaemonClient::create(global_), exit_usage);
    return or_fail(daemon.exchange("GET", "/v1/status")).at("peers");
  }

  // Why a node may not have these names; empty: it may. A node that is known may renew its certificate.
  std::string why_not(const NodeNames& names, const std::string& from) const {
    const std::string shown = base::printable(names.name);
    if (boost::iequals(names.name, config_.node.name))
      return fmt::format("'{}' is the name of this node", shown);
    if (!is_of_network(names.address) || names.address == address_)
      return fmt::format("{} is not an address of another machine", base::printable(names.address));
    for (const auto& peer : peers_of_daemon()) {
      if (!boost::iequals(text_or(peer.at("name"), ""), names.name)) continue;
      const std::string url = text_or(peer.at("url"), "");
      const auto known = base::parse_endpoint(url);
      if (known && known->host == names.address && from == names.address) continue;
      return fmt::format("'{}' is the name of the node at {}", shown, base::printable(url));
    }
    return {};
  }

  const GlobalOptions& global_;
  const NodeFiles& files_;
  const config::Config& config_;
  const std::string address_;
  const KeyAndCertificate authority_;
  std::string name_;
  std::string url_;
  base::Result<> listed_;
  bool is_new_ = false;
  bool has_others_ = false;
};

std::pair<std::string, std::uint16_t> host_and_port(const std::string& text) {
  if (base::is_ip_address(text)) return {text, invitation_port};
  const auto endpoint = or_fail(base::parse_endpoint("https://" + text, invitation_port), exit_usage);
  return {endpoint.host, endpoint.port};
}

// A new certificate for this node, of a node that invites it.
ordered_json request_certificate(SetupOptions& options, const std::string& key) {
  if (options.token.empty()) options.token = ask("Token of spoor setup --invite", "");
  const JoinToken token = or_fail(parse_join_token(options.token), exit_usage);
  const auto [host, port] = host_and_port(options.join);
  if (!options.address.empty()) check_reachable(options.address);
  return or_fail(join(host, port, token, [&](const std::string& own_address) {
    if (options.address.empty()) options.address = own_address;
    return ordered_json{{"name", options.name}, {"address", options.address}, {"request", make_request(key)}};
  }));
}

// `response`: its "authority" and "certificate", for this key.
void install_certificate(const NodeFiles& files, const std::string& key, const ordered_json& response) {
  or_fail(install_file(files.ca, response.at("authority").get<std::string>(), Readers::all));
  or_fail(
      install_file(files.certificate, response.at("certificate").get<std::string>() + key, Readers::daemon));
}

// Prints a token, waits for the node that joins with it, and lists that node as a peer.
void invite_node(const SetupOptions& options, const NodeFiles& files, const GlobalOptions& global) {
  const config::Config config = or_fail(global.load_config(), exit_usage);
  const config::Listener& own = listener_of(config);
  Invitation invitation{.address = options.address.empty() ? own.address : options.address,
                        .certificate = own.tls->certificate,
                        .key = own.tls->key,
                        .token = make_join_token(or_fail(fingerprint_of(read_text(own.tls->certificate))))};
  if (!is_of_network(invitation.address))
    throw Failure{exit_usage, "give --address, the IP address by which other machines reach this one"};
  Admission admission(global, files, config, invitation.address);
  const InvitationCalls calls{
      .listening =
          [&](std::uint16_t) {
            print_text(fmt::format(
                "on the new node, within {}, with the directories of its data:\n"
                "  spoor setup --join {} --drive DIRECTORY\n"
                "which asks for this token, for one use:\n  {}\n",
                human_duration(invitation.time_max), invitation.address, to_text(invitation.token)));
            base::flush_standard_output();
          },
      .admit = [&](const ordered_json& request,
                   const std::string& from) { return admission.admit(request, from); },
      .refused = [](const std::string& from,
                    const std::string& why) { print_error(fmt::format("refused {}: {}", from, why)); }};
  or_fail(invite(invitation, calls));
  admission.finish();
}

void join_cluster(SetupOptions options, const NodeFiles& files, const GlobalOptions& global) {
  check_new(options, files);
  const ordered_json planned = checked_config(options, files, {options.cluster, {}, nullptr}, global);
  options.name = planned.at("node").at("name").get<std::string>();
  const std::string key = make_key();
  const ordered_json response = request_certificate(options, key);
  const SharedSettings common{response.at("cluster").get<std::string>(),
                              response.at("peers").get<std::vector<std::string>>(), response.at("namespace")};
  options.tls = true;
  const ordered_json json = checked_config(options, files, common, global);
  install_certificate(files, key, response);
  write_node(options, files, json);
}

// Replaces the certificate of this node, by its own authority or that of a node that invites it.
void renew(SetupOptions options, const NodeFiles& files, const GlobalOptions& global) {
  const config::Config config = or_fail(global.load_config(), exit_usage);
  const config::Listener& own = listener_of(config);
  if (own.tls->certificate != files.certificate || config.peers.tls->ca != files.ca) {
    throw_failure(exit_usage, "spoor setup has not made the certificate of this node, {}",
                  base::printable(own.tls->certificate.native()));
  }
  options.name = config.node.name;
  if (options.address.empty()) options.address = own.address;
  check_reachable(options.address);
  const std::string key = make_key();
  const std::string authority = read_text(files.ca);
  if (!options.join.empty()) {
    const ordered_json response = request_certificate(options, key);
    if (response.at("cluster") != config.node.cluster || response.at("authority") != authority)
      throw_failure(exit_failed, "{} is a node of another cluster, or has another authority",
                    base::printable(options.join));
    install_certificate(files, key, response);
  } else {
    install_certificate(
        files, key,
        {{"authority", authority},
         {"certificate", or_fail(issue(read_authority(files), make_request(key),
                                       {options.name, options.address}, base::SystemClock().wall_now()))}});
  }
  print_text(fmt::format("wrote {}\n", files.certificate.native()));
  reload_daemon(files);
}

void set_up(SetupOptions options, const NodeFiles& files, const GlobalOptions& global) {
  check_new(options, files);
  options.tls = options.tls || !options.peers.empty();
  SharedSettings common{options.cluster, {}, nullptr};
  if (!options.tls && !options.address.empty())
    throw Failure{exit_usage, "--address has no effect without --tls or --peer"};
  if (options.tls) {
    check_reachable(options.address);
    for (const std::string& peer : options.peers) add_once(common.peers, peer_url(peer));
  }
  const ordered_json json = checked_config(options, files, common, global);
  options.name = json.at("node").at("name").get<std::string>();
  if (options.tls) {
    // The configuration comes last: it is what says that a node has been set up.
    const auto now = base::SystemClock().wall_now();
    // Another authority would shut out the nodes that have joined.
    const KeyAndCertificate authority =
        fs::exists(files.ca_key) ? read_authority(files) : make_authority(options.cluster, now);
    const std::string key = make_key();
    const std::string certificate =
        or_fail(issue(authority, make_request(key), {options.name, options.address}, now));
    or_fail(install_file(files.ca_key, authority.key, Readers::root));
    install_certificate(files, key, {{"authority", authority.certificate}, {"certificate", certificate}});
  }
  write_node(options, files, json);
  if (options.tls) print_text("for each other node: spoor setup --invite\n");
}

void add_peer(const std::string& peer, const NodeFiles& files) {
  or_fail(list_peer(files, peer_url(peer)));
  reload_daemon(files);
}

// Prints the new token, of which the configuration has the hash.
void add_token(const std::string& name_and_role, const NodeFiles& files, const GlobalOptions& global) {
  const auto colon = name_and_role.find(':');
  if (colon == std::string::npos)
    throw Failure{exit_usage, "--add-token: expected NAME:ROLE, such as page:read; see spoor-setup(1)"};
  const std::string name = name_and_role.substr(0, colon);
  const auto known = or_fail(global.load_config(), exit_usage).auth.tokens;
  if (std::ranges::find(known, name, &config::Token::name) != known.end()) {
    throw_failure(exit_usage, "there is a token '{}': remove it from auth.tokens, or give another name",
                  base::printable(name));
  }
  const std::string token = fmt::format("{:02x}", fmt::join(peer::random_bytes(token_bytes), ""));
  const ordered_json entry = {{"name", name},
                              {"role", name_and_role.substr(colon + 1)},
                              {"sha256", fmt::format("{:02x}", fmt::join(peer::sha256(token), ""))}};
  or_fail(edit_config(files.config, fmt::format("{} to auth.tokens, for the token {},", entry.dump(), token),
                      [&](ordered_json& json) { json["auth"]["tokens"].push_back(entry); }),
          exit_usage);
  if (known.empty()) print_error("from now on, clients at a loopback address need a token, also to mark");
  reload_daemon(files);
  print_text(token + '\n');
}

void run_setup(const SetupOptions& options, const GlobalOptions& global) {
  const NodeFiles files(fs::absolute(global.config_file.value_or(fs::path(config::default_file))));
  std::error_code error;
  fs::create_directories(files.config.parent_path(), error);
  if (::access(files.config.parent_path().c_str(), W_OK) != 0) {
    throw_failure(exit_failed, "cannot write to {}: run this as root",
                  base::printable(files.config.parent_path().native()));
  }
  if (options.renew) return renew(options, files, global);
  if (options.invite) return invite_node(options, files, global);
  if (!options.join.empty()) return join_cluster(options, files, global);
  if (!options.add_peer.empty()) return add_peer(options.add_peer, files);
  if (!options.add_token.empty()) return add_token(options.add_token, files, global);
  set_up(options, files, global);
}

// What each use of the command has no use for would be ignored in silence.
void refuse_other_options(const CLI::App& command) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> uses = {
      {"--renew", {"--join", "--token", "--address"}},
      {"--invite", {"--address"}},
      {"--join", {"--token", "--name", "--drive", "--address", "--no-watch", "--no-start", "--force"}},
      {"--add-peer", {}},
      {"--add-token", {}},
      {"",
       {"--name", "--cluster", "--drive", "--tls", "--address", "--peer", "--no-watch", "--no-start",
        "--force"}},
  };
  const auto use = std::ranges::find_if(
      uses, [&](const auto& each) { return each.first.empty() || command.count(each.first) > 0; });
  for (const CLI::Option* const option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || name == use->first ||
        std::ranges::find(use->second, name) != use->second.end())
      continue;
    throw_failure(exit_usage, "{} has no effect {}", name,
                  use->first.empty() ? "without --join" : "with " + use->first);
  }
}

}  // namespace

void add_setup_command(CLI::App& program, const GlobalOptions& global) {
  CLI::App* command =
      program.add_subcommand("setup", "Makes this machine a node: configuration, certificates, units");
  auto options = std::make_shared<SetupOptions>();
  add_value(*command, "--name", options->name, "NAME", "Name of the node (default: the host name)");
  add_value(*command, "--drive", options->drives, "DIRECTORY", "A directory with data; repeatable")
      ->allow_extra_args(false);
  add_value(*command, "--cluster", options->cluster, "NAME", "Name of the cluster (default: default)");
  command->add_flag("--tls", options->tls, "Makes a certificate authority, so that other nodes can join");
  add_value(*command, "--address", options->address, "IP",
            "The IP address at which other nodes reach this one (with --join: that of the connection)");
  add_value(*command, "--peer", options->peers, "ADDRESS",
            "Address of a node that will join; includes --tls; repeatable")
      ->allow_extra_args(false);
  command->add_flag("--no-watch", options->no_watch,
                    "Without spoor-watch: the writers mark what they change");
  command->add_flag("--no-start", options->no_start, "Starts no units");
  command->add_flag("--force", options->force, "Replaces a configuration, and keeps it as FILE.old");
  command->add_flag("--invite", options->invite, "Prints a token, and waits for a node that joins with it");
  add_value(*command, "--join", options->join, "HOST", "Joins the cluster of the node that invites this one");
  add_value(*command, "--token", options->token, "TOKEN", "The token of --invite (default: it is asked for)");
  command->add_flag("--renew", options->renew, "Makes a new certificate for this node, alone or with --join");
  add_value(*command, "--add-peer", options->add_peer, "ADDRESS", "Adds a node to peers.static");
  add_value(*command, "--add-token", options->add_token, "NAME:ROLE",
            "Adds a token, and prints it: mark, read, peer or admin");
  command->callback([command, options, &global] {
    refuse_url(global, "setup");
    refuse_empty_values(*command);
    refuse_other_options(*command);
    run_setup(*options, global);
  });
}

}  // namespace spoor::cli
