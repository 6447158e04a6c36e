#include "daemon/membership/etcd_membership.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/printable.h"
#include "daemon/process/task.h"
#include "peer/gather/cycle_exchange.h"
#include "peer/membership/etcd_members.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

constexpr milliseconds timeout{2'000};         // short: a stop waits for it
constexpr milliseconds call_max{10'000};       // of all endpoints of etcd: the first ones may hang
constexpr milliseconds timeout_to_leave{500};  // otherwise the lease expires
constexpr milliseconds first_pause{500};       // after a failure
constexpr unsigned doublings_max = 10;
constexpr std::uint64_t note_bytes_max = 64U << 10U;
constexpr std::uint64_t probe_bytes_max = 64U << 10U;
constexpr milliseconds pause_least{100};
constexpr std::uint64_t note_time_max = std::uint64_t{1} << 43U;  // ms: the year 2248

std::filesystem::path note_file(const std::filesystem::path& data_dir) {
  return data_dir / "registration.json";
}

// Identifies this registration: a note of another name, URL or cluster is ignored.
nlohmann::json note_of(const EtcdMembership::Options& options) {
  return {{"version", 1},
          {"prefix", options.location.prefix},
          {"cluster", options.location.cluster},
          {"node", options.self.node},
          {"url", options.self.url},
          {"boot_id", options.boot_id}};
}

// When an earlier run was alive in etcd for certain. The clocks of another boot of the machine are not
// comparable.
std::optional<EtcdMembership::Confirmation> read_note(base::FileSystem& files,
                                                      const EtcdMembership::Options& options) {
  const auto text = base::read_if_there(files, note_file(options.data_dir), note_bytes_max);
  if (!text || !*text || options.boot_id.empty()) return std::nullopt;
  auto note = nlohmann::json::parse(**text, nullptr, false);
  if (!note.is_object()) return std::nullopt;
  const auto take = [&](const char* name) -> std::optional<milliseconds> {
    const auto found = note.find(name);
    if (found == note.end() || !found->is_number_unsigned()) return std::nullopt;
    const auto number = found->get<std::uint64_t>();
    note.erase(found);
    return number > note_time_max ? std::nullopt : std::optional(milliseconds(number));
  };
  const auto wall = take("confirmed_ms");
  const auto steady = take("confirmed_steady_ms");
  if (!wall || !steady || note != note_of(options)) return std::nullopt;
  return EtcdMembership::Confirmation{base::SteadyTime(*steady), base::WallTime(*wall)};
}

std::uint64_t since_epoch_ms(auto time) {
  const auto since_epoch = std::chrono::floor<milliseconds>(time.time_since_epoch());
  return static_cast<std::uint64_t>(std::max<milliseconds::rep>(since_epoch.count(), 0));
}

using Places = std::set<std::pair<std::string, std::string>>;  // names and URLs

// A client of its own, for one call on another thread.
class OneCall {
 public:
  OneCall(const EtcdMembership::Options& options, EtcdMembership::Secrets secrets, const base::Clock& clock,
          std::stop_token stop)
      : options_(options),
        secrets_(std::move(secrets)),
        stop_(stop),
        transport_(options.make_transport(
            peer::HttpTransport::Options{.credentials = secrets_.etcd,
                                         .timeout = timeout,
                                         .body_bytes_max = peer::EtcdClient::answer_bytes_max,
                                         .stop = stop})),
        client_(*transport_, clock, options.endpoints,
                {.user = options.user,
                 .password = secrets_.etcd_password,
                 .operation_max = call_max,
                 .stop = stop}) {}

  peer::SourceListing list() {
    return peer::EtcdMembers(client_, options_.location, options_.self.url).list().front();
  }

  base::Result<peer::RegisteredMember> remove(const std::string& name_or_url) {
    const auto registry = peer::read_registry(client_, options_.location);
    if (!registry) return registry.error();
    const auto entry = find_removable(*registry, name_or_url);
    if (!entry) return entry.error();
    const auto& [node, url, instance] = entry->member;
    const auto transport = options_.make_transport(peer::HttpTransport::Options{
        .credentials = secrets_.peers, .timeout = timeout, .body_bytes_max = probe_bytes_max, .stop = stop_});
    if (peer::is_running(*transport, entry->endpoint, options_.location.cluster, node)) {
      return refusal(
          fmt::format("'{}' runs at {}, though it is not registered: it can't reach etcd, and still "
                      "acknowledges marks. Stop spoord there first",
                      node, url));
    }
    const auto evicted = peer::evict_member(client_, options_.location, *entry);
    if (!evicted) return evicted.error();
    if (!*evicted) return refusal("the members in etcd changed meanwhile: nothing was removed, try again");
    spdlog::warn("node '{}' at {} was removed from the members", node, url);
    return entry->member;
  }

 private:
  static base::Error refusal(std::string why) {
    return {std::make_error_code(std::errc::operation_not_permitted), std::move(why)};
  }

  static base::Result<peer::RegistryEntry> find_removable(const peer::Registry& registry,
                                                          const std::string& name_or_url) {
    const peer::RegistryEntry* found = nullptr;
    for (const peer::RegistryEntry& entry : registry.entries) {
      if (entry.member.node != name_or_url && entry.member.url != name_or_url) continue;
      if (found != nullptr)
        return refusal(
            fmt::format("'{}' has several entries: give the URL of one", base::printable(name_or_url)));
      found = &entry;
    }
    if (found == nullptr) {
      return refusal(
          fmt::format("etcd lists no member '{}': see 'spoor members'. Remove a member of "
                      "peers.static or peers.dns there",
                      base::printable(name_or_url)));
    }
    if (found->is_alive) {
      return refusal(fmt::format("'{}' is registered: stop spoord there first, and wait for peers.etcd.ttl",
                                 base::printable(name_or_url)));
    }
    return *found;
  }

  const EtcdMembership::Options& options_;
  const EtcdMembership::Secrets secrets_;
  const std::stop_token stop_;
  const std::unique_ptr<peer::Transport> transport_;
  peer::EtcdClient client_;
};

Places places_of(const std::vector<peer::RegistryEntry>& registry) {
  Places places;
  for (const peer::RegistryEntry& entry : registry) places.emplace(entry.member.node, entry.member.url);
  return places;
}

}  // namespace

EtcdMembership::EtcdMembership(asio::io_context& context, asio::thread_pool& pool, base::FileSystem& files,
                               const base::Clock& clock, Timers& timers, Options options,
                               OnMembers on_members)
    : context_(context),
      pool_(pool),
      files_(files),
      clock_(clock),
      options_(std::move(options)),
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
                     .forget_after = options_.forget_after,
                     .answers = [this](const peer::RegistryEntry& entry) { return answers(entry); }}),
      jitter_(std::random_device()()) {
  status_.error = "no request to etcd has completed yet";
  confirmed_ = read_note(files_, options_);
  if (confirmed_) noted_at_ = confirmed_->wall;
}

void EtcdMembership::register_here() { take(look()); }

void EtcdMembership::start() { asio::co_spawn(context_, run(), rethrow); }

void EtcdMembership::stop() {
  stop_.request_stop();
  timer_->cancel();
}

void EtcdMembership::retire() {
  is_retired_ = true;
  timer_->cancel();
}

std::function<peer::SourceListing()> EtcdMembership::lister() const {
  return [this, secrets = secrets_] { return OneCall(options_, secrets, clock_, stop_.get_token()).list(); };
}

std::function<base::Result<peer::RegisteredMember>()> EtcdMembership::remover(std::string name_or_url) const {
  return [this, secrets = secrets_, name = std::move(name_or_url)] {
    return OneCall(options_, secrets, clock_, stop_.get_token()).remove(name);
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

std::string EtcdMembership::health_error() const {
  if (!confirmed_) {
    return fmt::format("not yet a member in etcd, and scans of other nodes do not request this one: {}",
                       status_.error);
  }
  if (is_missing_) {
    return fmt::format("no longer a member in etcd, and scans of other nodes may not request this one: {}",
                       status_.error);
  }
  // The steady clock stops while the machine sleeps, and the wall clock may be set: the longer time counts.
  const auto age = std::max<std::chrono::nanoseconds>(clock_.steady_now() - confirmed_->steady,
                                                      clock_.wall_now() - confirmed_->wall);
  if (age < options_.forget_after - options_.ttl) return {};
  return fmt::format(
      "not confirmed by etcd for so long that other nodes may have evicted it (peers.etcd.forget_after): {}",
      status_.error);
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
    auto found = co_await run_on(pool_, [this] { return look(); });
    if (!stop_.stop_requested()) take(std::move(found));
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
  if (done && is_retired_) done = remove(client);
  return done;
}

base::Result<> EtcdMembership::remove(peer::EtcdClient& client) const {
  const auto registry = peer::read_registry(client, options_.location);
  if (!registry) return registry.error();
  for (const peer::RegistryEntry& entry : registry->entries) {
    if (!registration_.is_self(entry)) continue;
    const auto removed = peer::evict_member(client, options_.location, entry);
    if (!removed) return removed.error();
    if (!*removed)
      return base::Error(std::make_error_code(std::errc::resource_unavailable_try_again),
                         "the members in etcd changed meanwhile");
  }
  return {};
}

EtcdMembership::Look EtcdMembership::look() {
  const auto done = registration_.refresh();
  Look found;
  if (!done) found.failure = done.error().message;
  found.conflict = registration_.conflict();
  found.registered = registration_.is_registered();
  found.missing = registration_.is_missing();
  if (found.registered) found.confirmed = Confirmation{*registration_.confirmed_at(), clock_.wall_now()};
  if (done) note_registration();
  found.registry = registration_.registry();
  found.evicted = registration_.evicted();
  return found;
}

// Lets a restart during an outage of etcd determine whether scans request this node. Written only every
// sixteenth of `forget_after`: the note may be that much too old.
void EtcdMembership::note_registration() {
  const auto now = clock_.wall_now();
  if (noted_at_ && now >= *noted_at_ && now - *noted_at_ < options_.forget_after / 16) return;
  auto note = note_of(options_);
  note["confirmed_ms"] = since_epoch_ms(now);
  note["confirmed_steady_ms"] = since_epoch_ms(clock_.steady_now());
  noted_at_ = now;
  const auto done = base::replace_file(files_, note_file(options_.data_dir), note.dump() + "\n");
  if (!done) spdlog::warn("{}", done.error().message);
}

bool EtcdMembership::answers(const peer::RegistryEntry& entry) const {
  if (stop_.stop_requested()) return true;  // stopping: no member is evicted
  const auto transport = options_.make_transport(peer::HttpTransport::Options{
      .credentials = secrets_.peers, .timeout = timeout, .body_bytes_max = probe_bytes_max});
  return peer::is_running(*transport, entry.endpoint, options_.location.cluster, entry.member.node);
}

void EtcdMembership::take(Look look) {
  const std::string error = look.failure.empty() ? look.conflict : look.failure;
  if (!look.failure.empty() && failures_ == 0) {
    spdlog::warn("{}; the {} last-known members stay in use", look.failure, look.registry.size());
  } else if (look.failure.empty() && failures_ > 0) {
    spdlog::info("etcd responds again: registered in etcd as node '{}' at {}", options_.self.node,
                 options_.self.url);
  } else if (look.failure.empty() && !status_.registered) {
    spdlog::info("registered in etcd as node '{}' at {}", options_.self.node, options_.self.url);
  }
  if (look.failure.empty() && !look.conflict.empty() && status_.error != error) spdlog::error("{}", error);
  for (const peer::RegistryEntry& gone : look.evicted) {
    spdlog::warn("node '{}' at {} no longer responds, and is evicted from the members", gone.member.node,
                 gone.member.url);
  }
  failures_ = look.failure.empty() ? 0 : failures_ + 1;
  status_.ok = error.empty();
  status_.error = error;
  status_.registered = look.registered;
  is_missing_ = look.missing;
  if (look.confirmed) confirmed_ = look.confirmed;
  const std::string refusal = health_error();
  if (refusal.empty() != was_acknowledging_) {
    was_acknowledging_ = refusal.empty();
    if (refusal.empty()) {
      spdlog::info("marks are acknowledged again");
    } else {
      spdlog::error("marks are not acknowledged: {}", refusal);
    }
  }
  apply_registry(std::move(look.registry));
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
