#include "daemon/membership/etcd_membership.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <utility>

#include "daemon/process/task.h"
#include "peer/membership/etcd_registry.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

constexpr milliseconds timeout{2'000};         // short: a stop waits for it
constexpr milliseconds call_max{10'000};       // of all endpoints of etcd: the first ones may hang
constexpr milliseconds timeout_to_leave{500};  // otherwise the lease expires
constexpr milliseconds first_pause{500};       // after a failure
constexpr unsigned doublings_max = 10;
constexpr milliseconds pause_least{100};

using Places = std::set<std::pair<std::string, std::string>>;  // names and URLs

Places places_of(const std::vector<peer::RegistryEntry>& registry) {
  Places places;
  for (const peer::RegistryEntry& entry : registry) places.emplace(entry.member.node, entry.member.url);
  return places;
}

}  // namespace

EtcdMembership::EtcdMembership(asio::io_context& context, asio::thread_pool& pool, const base::Clock& clock,
                               Timers& timers, Options options, OnRefreshed on_refreshed,
                               OnMembers on_members)
    : context_(context),
      pool_(pool),
      clock_(clock),
      options_(std::move(options)),
      on_refreshed_(std::move(on_refreshed)),
      on_members_(std::move(on_members)),
      timer_(timers.make()),
      secrets_(options_.secrets),
      transport_(make_etcd_transport(timeout)),
      client_(*transport_, clock, options_.endpoints,
              {.user = options_.user,
               .password = secrets_.etcd_password,
               .operation_max = timeout,
               .stop = stop_.get_token()}),
      registration_(client_, clock,
                    {.location = options_.location,
                     .self = options_.self,
                     .ttl = options_.ttl,
                     .forget_after = options_.forget_after}),
      jitter_(std::random_device()()) {
  status_.error = "no request to etcd has completed yet";
}

asio::awaitable<void> EtcdMembership::register_here() { return refresh(); }

void EtcdMembership::start() { asio::co_spawn(context_, run(), rethrow); }

void EtcdMembership::stop() {
  stop_.request_stop();
  timer_->cancel();
}

void EtcdMembership::retire() {
  is_retired_ = true;
  timer_->cancel();
}

// With a client of its own, for one call on another thread.
std::function<peer::SourceListing()> EtcdMembership::lister() const {
  return [this, secrets = secrets_, stop = stop_.get_token()] {
    const auto transport = options_.make_transport(
        peer::HttpTransport::Options{.credentials = secrets.etcd,
                                     .timeout = timeout,
                                     .body_bytes_max = peer::EtcdClient::answer_bytes_max,
                                     .stop = stop});
    peer::EtcdClient client(
        *transport, clock_, options_.endpoints,
        {.user = options_.user, .password = secrets.etcd_password, .operation_max = call_max, .stop = stop});
    return peer::list_members(client, options_.location, options_.self.url);
  };
}

void EtcdMembership::set_secrets(Secrets secrets) { pending_secrets_ = std::move(secrets); }

std::unique_ptr<peer::Transport> EtcdMembership::make_etcd_transport(milliseconds limit) const {
  return options_.make_transport(peer::HttpTransport::Options{
      .credentials = secrets_.etcd, .timeout = limit, .body_bytes_max = peer::EtcdClient::answer_bytes_max});
}

// Between two refreshes: these run on the pool.
void EtcdMembership::apply_secrets() {
  if (!pending_secrets_) return;
  secrets_ = *std::exchange(pending_secrets_, {});
  auto transport = make_etcd_transport(timeout);
  client_.set_transport(*transport, secrets_.etcd_password);
  transport_ = std::move(transport);
}

asio::awaitable<void> EtcdMembership::run() {
  while (!stop_.stop_requested()) {
    co_await timer_->wait(pause());
    if (stop_.stop_requested()) break;
    apply_secrets();
    if (is_retired_) {
      const auto left = co_await run_on(pool_, [this] { return leave(); });
      if (left) co_return;
      if (failures_++ == 0) spdlog::warn("{}; this node is not removed from etcd yet", left.error().message);
      continue;
    }
    co_await refresh();
  }
  // If etcd does not respond, the stop does not wait for another timeout.
  if (failures_ > 0) co_return;
  const auto left = co_await run_on(pool_, [this] { return leave(); });
  if (!left)
    spdlog::warn("{}; this node counts as alive for up to {} s", left.error().message, options_.ttl.count());
}

base::Result<> EtcdMembership::leave() {
  const auto transport = make_etcd_transport(timeout_to_leave);
  peer::EtcdClient client(
      *transport, clock_, options_.endpoints,
      {.user = options_.user, .password = secrets_.etcd_password, .operation_max = timeout_to_leave});
  auto done = registration_.leave(client);
  if (done && is_retired_) done = registration_.remove(client);
  return done;
}

asio::awaitable<void> EtcdMembership::refresh() {
  const auto began_at = clock_.wall_now();
  const auto done = co_await run_on(pool_, [this] { return registration_.refresh(); });
  if (!stop_.stop_requested()) take(done, began_at);
}

void EtcdMembership::take(const base::Result<>& done, base::WallTime began_at) {
  const std::string error = done ? registration_.conflict() : done.error().message;
  if (!done && failures_ == 0) {
    spdlog::warn("{}; the {} last-known members stay in use", error, registration_.registry().size());
  } else if (done && (failures_ > 0 || !status_.registered)) {
    spdlog::info("{}registered in etcd as node '{}' at {}", failures_ > 0 ? "etcd responds again: " : "",
                 options_.self.node, options_.self.url);
  }
  if (done && !error.empty() && status_.error != error) spdlog::error("{}", error);
  failures_ = done ? 0 : failures_ + 1;
  status_.ok = error.empty();
  status_.error = error;
  status_.registered = registration_.is_registered();
  std::optional<tracker::KnownAt> confirmed;
  if (done) confirmed = {*registration_.confirmed_at(), began_at};
  on_refreshed_(confirmed, status_.error);
  apply_registry(registration_.registry());
}

void EtcdMembership::apply_registry(std::vector<peer::RegistryEntry> now) {
  if (now == registry_) return;
  const Places before = places_of(registry_);
  registry_ = std::move(now);
  status_.members = registry_.size();
  const Places after = places_of(registry_);
  for (const auto& [node, url] : after) {
    if (!before.contains({node, url})) spdlog::info("member '{}' at {}", node, url);
  }
  for (const auto& [node, url] : before) {
    if (!after.contains({node, url})) spdlog::info("no longer a member: '{}' at {}", node, url);
  }
  std::vector<base::Endpoint> others;
  for (const peer::RegistryEntry& entry : registry_) {
    if (!registration_.is_self(entry)) others.push_back(entry.endpoint);
  }
  on_members_(std::move(others));
}

milliseconds EtcdMembership::pause() {
  const milliseconds regular = milliseconds(options_.ttl) / 3;
  const milliseconds backed_off =
      first_pause * (1U << std::min(failures_ > 0 ? failures_ - 1 : 0, doublings_max));
  const milliseconds most = failures_ == 0 ? regular : std::min(regular, backed_off);
  // Spreads the retries of nodes that lost etcd at the same time.
  const milliseconds chosen(
      std::uniform_int_distribution<milliseconds::rep>(most.count() * 3 / 4, most.count())(jitter_));
  return std::max(chosen, pause_least);
}

}  // namespace spoor::daemon
