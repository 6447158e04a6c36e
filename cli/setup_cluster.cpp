#include "cli/setup_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/endpoint.h"
#include "base/printable.h"
#include "base/standard_streams.h"
#include "cli/daemon_client.h"
#include "cli/format.h"
#include "cli/setup/invitation.h"
#include "config/load.h"

namespace spoor::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

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
    if (const auto why = why_not(names, from); !why.empty())
      return base::Error(std::make_error_code(std::errc::invalid_argument), why);
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

}  // namespace

KeyAndCertificate read_authority(const NodeFiles& files) {
  if (!fs::exists(files.ca_key)) {
    throw Failure{exit_usage, fmt::format("{} is not here: run this on the node that made the authority",
                                          base::printable(files.ca_key.native()))};
  }
  KeyAndCertificate authority{read_text(files.ca_key), read_text(files.ca)};
  or_fail(issue(authority, make_request(make_key()), {"check", "0.0.0.0"}, base::SystemClock().wall_now()));
  return authority;
}

void install_certificate(const NodeFiles& files, const std::string& key, const ordered_json& response) {
  or_fail(install_file(files.ca, response.at("authority").get<std::string>(), Readers::all));
  or_fail(
      install_file(files.certificate, response.at("certificate").get<std::string>() + key, Readers::daemon));
}

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

void renew(SetupOptions options, const NodeFiles& files, const GlobalOptions& global) {
  const config::Config config = or_fail(global.load_config(), exit_usage);
  const config::Listener& own = listener_of(config);
  if (own.tls->certificate != files.certificate || config.peers.tls->ca != files.ca) {
    throw Failure{exit_usage, fmt::format("spoor setup has not made the certificate of this node, {}",
                                          base::printable(own.tls->certificate.native()))};
  }
  options.name = config.node.name;
  if (options.address.empty()) options.address = own.address;
  check_reachable(options.address);
  const std::string key = make_key();
  const std::string authority = read_text(files.ca);
  if (!options.join.empty()) {
    const ordered_json response = request_certificate(options, key);
    if (response.at("cluster") != config.node.cluster || response.at("authority") != authority)
      throw Failure{exit_failed, fmt::format("{} is a node of another cluster, or has another authority",
                                             base::printable(options.join))};
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

}  // namespace spoor::cli
