#include "daemon/peer_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "daemon/task.h"
#include "peer/cycle_frame.h"
#include "peer/cycle_request.h"
#include "peer/http_transport.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds interval{30'000};
constexpr std::chrono::milliseconds first_pause{500};  // while some peer is down: nodes start one by one
constexpr std::chrono::milliseconds timeout{2'000};    // short: a stop waits for it

PeerState state_of(const peer::Endpoint& endpoint, const base::Result<peer::HttpResponse>& response) {
  PeerState state;
  state.url = endpoint.to_string();
  state.state = "down";
  if (!response) {
    state.error = response.error().message;
  } else if (!response->is_success()) {
    state.error = peer::problem_detail(*response);
  } else if (const auto frame = peer::decode_cycle_frame(response->body); !frame) {
    state.error = frame.error().message;
  } else {
    state.state = "up";
    state.name = frame->sender.node;
  }
  return state;
}

asio::awaitable<std::vector<PeerState>> probe(std::string cluster, std::vector<peer::Endpoint> endpoints) {
  tracker::CycleRequest only_the_head;
  only_the_head.marks_wanted = false;
  const std::string body = peer::to_json({std::move(cluster), only_the_head});
  std::vector<peer::HttpRequest> requests;
  requests.reserve(endpoints.size());
  for (const auto& endpoint : endpoints) {
    requests.push_back({endpoint, "POST", "/v1/peer/cycle", "application/json", body});
  }
  std::vector<PeerState> states(endpoints.size());
  peer::HttpTransport transport({.timeout = timeout});
  transport.exchange(requests, [&](std::size_t index, const base::Result<peer::HttpResponse>& response) {
    states[index] = state_of(endpoints[index], response);
  });
  co_return states;
}

}  // namespace

PeerWatch::PeerWatch(asio::io_context& context, asio::thread_pool& pool, std::string cluster,
                     std::vector<peer::Endpoint> peers, const base::Clock& clock)
    : context_(context),
      pool_(pool),
      cluster_(std::move(cluster)),
      endpoints_(std::move(peers)),
      clock_(clock),
      timer_(context) {
  for (const auto& endpoint : endpoints_) {
    states_.emplace_back();
    states_.back().url = endpoint.to_string();
  }
}

void PeerWatch::start() {
  if (!endpoints_.empty()) asio::co_spawn(context_, run(), rethrow);
}

void PeerWatch::stop() {
  stopped_ = true;
  timer_.cancel();
}

asio::awaitable<void> PeerWatch::run() {
  std::chrono::milliseconds pause = first_pause;
  while (!stopped_) {
    auto states = co_await asio::co_spawn(pool_, probe(cluster_, endpoints_), asio::use_awaitable);
    for (std::size_t at = 0; at < states.size(); ++at) take(at, std::move(states[at]));
    if (stopped_) break;
    const bool all_up =
        std::all_of(states_.begin(), states_.end(), [](const PeerState& peer) { return peer.state == "up"; });
    timer_.expires_after(all_up ? interval : pause);
    pause = all_up ? first_pause : std::min(2 * pause, interval);
    co_await timer_.async_wait(as_result);
  }
}

void PeerWatch::take(std::size_t index, PeerState now) {
  PeerState& known = states_[index];
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
