#include "daemon/peer_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <map>
#include <set>
#include <utility>

#include "daemon/task.h"
#include "peer/probe.h"
#include "peer/tls_files.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds interval{30'000};
constexpr std::chrono::milliseconds first_pause{500};  // while some peer is down: nodes start one by one
constexpr std::chrono::milliseconds timeout{2'000};
constexpr std::chrono::milliseconds total_timeout{4'000};  // short: a stop waits for it

PeerState state_of(const peer::Endpoint& endpoint, const base::Result<peer::HttpResponse>& response) {
  PeerState state;
  state.url = endpoint.to_string();
  state.state = "down";
  if (const auto name = peer::read_probe(response)) {
    state.state = "up";
    state.name = *name;
  } else {
    state.error = name.error().message;
  }
  return state;
}

asio::awaitable<std::vector<PeerState>> probe(std::string cluster, std::vector<peer::Endpoint> endpoints,
                                              std::unique_ptr<peer::Transport> transport) {
  std::vector<peer::HttpRequest> requests;
  requests.reserve(endpoints.size());
  for (const auto& endpoint : endpoints) requests.push_back(peer::probe_request(endpoint, cluster));
  std::vector<PeerState> states(endpoints.size());
  transport->exchange(requests, [&](std::size_t index, const base::Result<peer::HttpResponse>& response) {
    states[index] = state_of(endpoints[index], response);
  });
  co_return states;
}

}  // namespace

PeerWatch::PeerWatch(asio::io_context& context, asio::thread_pool& pool, std::string cluster,
                     std::vector<peer::Endpoint> peers, const peer::Credentials& credentials,
                     const base::Clock& clock, Timers& timers, peer::MakeTransport make_transport)
    : context_(context),
      pool_(pool),
      cluster_(std::move(cluster)),
      static_endpoints_(std::move(peers)),
      clock_(clock),
      make_transport_(std::move(make_transport)),
      timer_(timers.make()) {
  set_credentials(credentials);
  gather();
}

void PeerWatch::set_credentials(const peer::Credentials& credentials) {
  credentials_ = credentials;
  tls_expiry_ = {};
  if (!credentials.tls) return;
  tls_expiry_.certificate = peer::certificate_valid_until(*credentials.tls);
  if (credentials.has_own_ca) tls_expiry_.ca = peer::authorities_valid_until(*credentials.tls);
}

void PeerWatch::set_peers(std::vector<peer::Endpoint> peers) {
  static_endpoints_ = std::move(peers);
  gather();
}

void PeerWatch::set_members(std::vector<peer::Endpoint> members) {
  members_ = std::move(members);
  gather();
}

void PeerWatch::gather() {
  std::vector<peer::Endpoint> endpoints;
  std::set<std::string> urls;
  for (const auto* const source : {&static_endpoints_, &members_}) {
    for (const auto& endpoint : *source) {
      if (urls.insert(endpoint.to_string()).second) endpoints.push_back(endpoint);
    }
  }
  if (endpoints == endpoints_) return;
  endpoints_ = std::move(endpoints);
  std::map<std::string, PeerState> known;
  for (PeerState& state : states_) known[state.url] = std::move(state);
  states_.clear();
  for (const auto& endpoint : endpoints_) {
    states_.push_back(std::move(known[endpoint.to_string()]));
    states_.back().url = endpoint.to_string();
  }
  has_new_ = true;
  timer_->cancel();
}

void PeerWatch::start() { asio::co_spawn(context_, run(), rethrow); }

void PeerWatch::stop() {
  stopped_ = true;
  timer_->cancel();
}

asio::awaitable<void> PeerWatch::run() {
  std::chrono::milliseconds pause = first_pause;
  while (!stopped_) {
    has_new_ = false;
    auto transport = make_transport_(peer::HttpTransport::Options{
        .credentials = credentials_, .timeout = timeout, .total_timeout = total_timeout});
    auto states = co_await asio::co_spawn(pool_, probe(cluster_, endpoints_, std::move(transport)),
                                          asio::use_awaitable);
    for (PeerState& state : states) take(std::move(state));
    if (stopped_) break;
    if (has_new_) continue;
    const bool all_up =
        std::all_of(states_.begin(), states_.end(), [](const PeerState& peer) { return peer.state == "up"; });
    const auto now = all_up ? interval : pause;
    pause = all_up ? first_pause : std::min(2 * pause, interval);
    co_await timer_->wait(now);
  }
}

void PeerWatch::take(PeerState now) {
  const auto found = std::ranges::find(states_, now.url, &PeerState::url);
  if (found == states_.end()) return;  // no longer asked
  PeerState& known = *found;
  if (now.state != known.state) {
    if (now.state == "up") {
      spdlog::info("peer {} ({}) is up", now.name, now.url);
    } else {
      const std::string name = known.name.empty() ? "" : known.name + ' ';
      spdlog::warn("peer {}({}) is down: {}", name, now.url, now.error);
    }
  }
  if (now.name.empty()) now.name = known.name;
  now.last_seen = now.state == "up" ? std::optional(clock_.wall_now()) : known.last_seen;
  known = std::move(now);
}

}  // namespace spoor::daemon
