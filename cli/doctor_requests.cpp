// What `spoor doctor` asks the daemon and the peers.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <set>
#include <utility>

#include "base/printable.h"
#include "cli/doctor.h"
#include "cli/program/format.h"
#include "peer/gather/cycle_exchange.h"
#include "peer/gather/cycle_frame.h"
#include "peer/http/http_transport.h"

namespace spoor::cli {
namespace {

using nlohmann::ordered_json;

// The daemon waits up to 5 s for its drives.
constexpr std::chrono::milliseconds daemon_timeout{8'000};
constexpr std::chrono::milliseconds peer_timeout{4'000};
constexpr std::chrono::milliseconds peers_timeout{8'000};  // of all of them
constexpr std::uint64_t body_bytes_max = std::uint64_t{4} << 20U;
constexpr std::uint64_t bodies_bytes_max = std::uint64_t{64} << 20U;
constexpr unsigned scans_read = 3;

Answer read_answer(const base::Result<peer::HttpResponse>& response) {
  if (!response) return {.error = response.error().message};
  Answer answer{.status = response->status, .body = peer::json_object(*response)};
  if (!response->is_success()) {
    answer.error = peer::problem_detail(*response);
  } else if (!answer.body.is_object()) {
    answer = {.error = "the response is not a JSON object"};
  }
  return answer;
}

// Not those that this user may not open.
bool is_down(const base::Error& error) { return error.code != std::errc::permission_denied; }

std::optional<std::chrono::seconds> clock_ahead(const std::string& date) {
  const auto there = peer::parse_http_date(date);
  if (!there) return std::nullopt;
  const auto now = std::chrono::floor<std::chrono::seconds>(base::SystemClock().wall_now());
  const auto ahead = *there - now;
  constexpr std::chrono::seconds century = std::chrono::years(100);  // fits into nanoseconds
  return std::clamp(ahead, -century, century);
}

void read_peer_probe(const base::Result<peer::HttpResponse>& response, PeerFacts& facts) {
  constexpr unsigned conflict = 409;  // wrong_cluster: nothing else is wrong with such a request
  if (!response) {
    facts.is_down = true;
    facts.error = response.error().message;
    return;
  }
  facts.is_of_other_cluster = response->status == conflict;
  facts.clock_ahead = clock_ahead(response->date);
  const auto frame = peer::read_frame(response);
  if (!frame) {
    facts.not_asked = frame.error().message;
    return;
  }
  facts.is_down = false;
  facts.error.clear();
  facts.node = frame->sender.node;
  facts.run = frame->run;
  facts.rules_digest = frame->rules_digest;
}

// Throws json::exception if the list is not of the expected form.
std::vector<PeerFacts> peers_in(const ordered_json& status) {
  std::vector<PeerFacts> peers;
  for (const auto& known : status.at("peers")) {
    peers.push_back({.url = known.at("url").get<std::string>(),
                     .node = text_or(known.at("name"), ""),
                     .error = text_or(known.at("error"), ""),
                     .is_down = known.at("state") == "down"});
  }
  return peers;
}

// Of the status of another node, which may be of any form.
std::map<std::string, std::string> responding_peers(const ordered_json& status) {
  std::map<std::string, std::string> found;
  const auto peers = status.find("peers");
  if (peers == status.end() || !peers->is_array()) return found;
  for (const auto& peer : *peers) {
    if (!peer.is_object() || !peer.contains("name") || !peer.contains("url") || !peer.contains("state"))
      continue;
    if (text_or(peer["state"], "") == "up")
      found.emplace(text_or(peer["name"], ""), text_or(peer["url"], ""));
  }
  return found;
}

std::optional<std::uint64_t> accepted_marks(const ordered_json& status) {
  static const ordered_json::json_pointer accepted("/marks/accepted");
  if (!status.contains(accepted) || !status[accepted].is_number_unsigned()) return std::nullopt;
  return status[accepted].get<std::uint64_t>();
}

// Without the daemon's list, the peers of the configuration.
std::vector<PeerFacts> configured_peers(const Facts& facts) {
  std::vector<PeerFacts> peers;
  peers.reserve(facts.config.peers.static_endpoints.size());
  for (const auto& endpoint : facts.config.peers.static_endpoints)
    peers.push_back({.url = endpoint.to_string()});
  return peers;
}

// The peers that the daemon knows, as it knows them.
std::vector<PeerFacts> known_peers(const Facts& facts) {
  if (!facts.daemon.status.is_ok()) return configured_peers(facts);
  try {
    return peers_in(facts.daemon.status.body);
  } catch (const ordered_json::exception&) {
    return configured_peers(facts);  // the checks that read the rest report it
  }
}

base::Result<peer::Credentials> credentials_for_peers(const GlobalOptions& global,
                                                      const config::Config::Peers& configured) {
  auto peers = configured;
  if (!global.token_file.empty()) peers.token_file = global.token_file;
  auto credentials = peer_credentials(peers);
  if (!credentials || peers.token_to_all) return credentials;
  auto& urls = credentials->trusted_urls.emplace();
  for (const auto& endpoint : peers.static_endpoints) urls.insert(endpoint.to_string());
  return credentials;
}

}  // namespace

base::Result<> ask_daemon(const GlobalOptions& global, Facts& facts) {
  const auto endpoint = global.own_endpoint();
  if (!endpoint) return endpoint.error();
  const auto credentials = global.own_credentials(*endpoint);
  DaemonFacts& daemon = facts.daemon;
  daemon.endpoint = endpoint->to_string();
  if (!credentials) {
    daemon.error = credentials.error().message;
    return {};
  }
  const std::array targets{std::pair{"/readyz", &daemon.ready}, std::pair{"/v1/status", &daemon.status},
                           std::pair{"/v1/drives", &daemon.drives}, std::pair{"/v1/scans", &daemon.scans}};
  std::vector<peer::HttpRequest> requests{peer::probe_request(*endpoint, facts.config.node.cluster)};
  for (const auto& [target, answer] : targets) requests.push_back({*endpoint, "GET", target, {}, {}});
  requests.back().target += fmt::format("?limit={}", scans_read);
  peer::HttpTransport transport({.credentials = *credentials, .timeout = daemon_timeout});
  transport.exchange(requests, [&](std::size_t index, const base::Result<peer::HttpResponse>& response) {
    if (index > 0) *targets.at(index - 1).second = read_answer(response);
    if (index == 2 && !response) daemon.is_down = is_down(response.error());
    const auto frame = peer::read_frame(response);
    if (index > 0 || !frame) return;
    facts.own_run = frame->run;
    facts.own_daemon_rules = frame->rules_digest;
  });
  daemon.error = daemon.status.error;
  return {};
}

void ask_peers(const GlobalOptions& global, Facts& facts) {
  facts.peers = known_peers(facts);
  if (facts.peers.empty()) return;
  const auto credentials = credentials_for_peers(global, facts.config.peers);
  std::vector<peer::HttpRequest> requests;
  std::vector<PeerFacts*> asked;
  for (PeerFacts& peer : facts.peers) {
    const auto endpoint = base::parse_endpoint(peer.url);
    if (!credentials || !endpoint) {
      peer.not_asked = credentials ? endpoint.error().message : credentials.error().message;
      continue;
    }
    requests.push_back(peer::probe_request(*endpoint, facts.config.node.cluster));
    requests.push_back({*endpoint, "GET", "/v1/status", {}, {}});
    asked.push_back(&peer);
  }
  if (requests.empty()) return;
  peer::HttpTransport transport({.credentials = *credentials,
                                 .timeout = peer_timeout,
                                 .total_timeout = peers_timeout,
                                 .body_bytes_max = body_bytes_max,
                                 .bodies_bytes_max = bodies_bytes_max});
  transport.exchange(requests, [&](std::size_t index, const base::Result<peer::HttpResponse>& response) {
    PeerFacts& peer = *asked[index / 2];
    if (index % 2 == 0) return read_peer_probe(response, peer);
    const Answer status = read_answer(response);
    if (status.is_ok() && status.body.contains("version")) peer.version = text_or(status.body["version"], "");
    if (status.is_ok()) peer.peers = responding_peers(status.body);
    if (status.is_ok()) peer.accepted = accepted_marks(status.body);
    if (peer.version.empty() && peer.not_asked.empty())
      peer.not_asked = status.error.empty() ? "the status has no version" : status.error;
  });
}

}  // namespace spoor::cli
