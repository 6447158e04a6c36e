#include "daemon/etcd_membership.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/task.h"
#include "peer/probe.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr milliseconds timeout{2'000};         // short: a stop waits for it
constexpr milliseconds timeout_to_leave{500};  // the lease ends by itself, too
constexpr milliseconds first_pause{500};       // after a failure
constexpr unsigned doublings_max = 10;
constexpr std::uint64_t note_bytes_max = 64U << 10U;

std::filesystem::path note_file(const std::filesystem::path& data_dir) {
  return data_dir / "registration.json";
}

// What stands in the note: one of another name, address or cluster says nothing of this one.
std::string note_text(const EtcdMembership::Options& options) {
  const nlohmann::json note{{"version", 1},
                            {"prefix", options.place.prefix},
                            {"cluster", options.place.cluster},
                            {"node", options.self.node},
                            {"url", options.self.url}};
  return note.dump() + "\n";
}

bool is_noted(base::FileSystem& files, const EtcdMembership::Options& options) {
  const auto text = base::read_if_there(files, note_file(options.data_dir), note_bytes_max);
  return text && *text == note_text(options);
}

bool is_same_place(const peer::RollEntry& one, const peer::RollEntry& other) {
  return one.member.node == other.member.node && one.member.url == other.member.url;
}

// Those of `all` that are not among `others`.
std::vector<peer::RollEntry> missing_in(const std::vector<peer::RollEntry>& others,
                                        const std::vector<peer::RollEntry>& all) {
  std::vector<peer::RollEntry> missing;
  std::ranges::copy_if(all, std::back_inserter(missing), [&](const peer::RollEntry& each) {
    return std::ranges::none_of(others, [&](const auto& other) { return is_same_place(each, other); });
  });
  return missing;
}

}  // namespace

EtcdMembership::EtcdMembership(asio::io_context& context, asio::thread_pool& pool, base::FileSystem& files,
                               const base::Clock& clock, Options options, OnMembers on_members)
    : context_(context),
      pool_(pool),
      files_(files),
      clock_(clock),
      options_(std::move(options)),
      on_members_(std::move(on_members)),
      timer_(context),
      transport_({.timeout = timeout, .body_bytes_max = peer::EtcdClient::answer_bytes_max}),
      client_(transport_, clock, options_.endpoints, {.operation_max = timeout, .stop = stop_.get_token()}),
      registration_(client_, clock,
                    {.place = options_.place,
                     .self = options_.self,
                     .ttl = options_.ttl,
                     .forget_after = options_.forget_after,
                     .answers = [this](const peer::RollEntry& entry) { return answers(entry); }}),
      jitter_(std::random_device()()) {
  status_.error = "etcd was not asked yet";
  noted_ = is_noted(files_, options_);
  status_.was_on_roll = noted_;
}

void EtcdMembership::register_here() { take(look_now()); }

void EtcdMembership::start() { asio::co_spawn(context_, run(), rethrow); }

void EtcdMembership::stop() {
  stop_.request_stop();
  timer_.cancel();
}

std::string EtcdMembership::trouble() const {
  if (status_.was_on_roll) return {};
  return fmt::format("not yet a member in etcd, so that no scan of another node asks this one: {}",
                     status_.error);
}

asio::awaitable<void> EtcdMembership::run() {
  while (!stop_.stop_requested()) {
    timer_.expires_after(pause());
    co_await timer_.async_wait(as_result);
    if (stop_.stop_requested()) break;
    auto found = co_await asio::co_spawn(pool_, look(), asio::use_awaitable);
    if (!stop_.stop_requested()) take(std::move(found));
  }
  // Where etcd is away, the stop need not wait to find out once more.
  if (failures_ == 0) co_await asio::co_spawn(pool_, leave(), asio::use_awaitable);
}

asio::awaitable<EtcdMembership::Look> EtcdMembership::look() { co_return look_now(); }

asio::awaitable<void> EtcdMembership::leave() {
  peer::HttpTransport transport({.timeout = timeout_to_leave});
  peer::EtcdClient client(transport, clock_, options_.endpoints, {.operation_max = timeout_to_leave});
  const auto done = registration_.leave(client);
  if (!done)
    spdlog::warn("{}; this node counts as alive for up to {} s", done.error().message, options_.ttl.count());
  co_return;
}

EtcdMembership::Look EtcdMembership::look_now() {
  const auto done = registration_.refresh();
  Look found;
  if (!done) found.failure = done.error().message;
  found.conflict = registration_.conflict();
  found.registered = registration_.is_registered();
  if (found.registered) note_registration();
  found.roll = registration_.roll();
  found.struck = registration_.struck();
  return found;
}

// So that a restart while etcd is away knows that scans ask this node.
void EtcdMembership::note_registration() {
  if (std::exchange(noted_, true)) return;
  const auto done = base::replace_file(files_, note_file(options_.data_dir), note_text(options_));
  if (!done) spdlog::warn("{}", done.error().message);
}

bool EtcdMembership::answers(const peer::RollEntry& entry) const {
  peer::HttpTransport transport({.timeout = timeout});
  const auto name = peer::read_probe(
      peer::exchange(transport, peer::probe_request(entry.endpoint, options_.place.cluster)));
  return name && *name == entry.member.node;
}

void EtcdMembership::take(Look look) {
  const std::string error = look.failure.empty() ? look.conflict : look.failure;
  if (!look.failure.empty() && failures_ == 0) {
    spdlog::warn("{}; going on with the {} members known", look.failure, look.roll.size());
  } else if (look.failure.empty() && failures_ > 0) {
    spdlog::info("etcd answers again: registered in etcd as node '{}' at {}", options_.self.node,
                 options_.self.url);
  } else if (look.failure.empty() && !status_.registered) {
    spdlog::info("registered in etcd as node '{}' at {}", options_.self.node, options_.self.url);
  }
  if (look.failure.empty() && !look.conflict.empty() && status_.error != error) spdlog::error("{}", error);
  for (const peer::RollEntry& gone : look.struck) {
    spdlog::warn("node '{}' at {} was gone for too long and is forgotten: every scan walks everything once",
                 gone.member.node, gone.member.url);
  }
  failures_ = look.failure.empty() ? 0 : failures_ + 1;
  log_changes(look.roll);
  roll_ = std::move(look.roll);
  status_.ok = error.empty();
  status_.error = error;
  status_.registered = look.registered;
  status_.members = roll_.size();
  status_.was_on_roll = status_.was_on_roll || look.registered;
  std::vector<peer::Endpoint> others;
  for (const peer::RollEntry& entry : roll_) {
    if (!registration_.is_self(entry)) others.push_back(entry.endpoint);
  }
  on_members_(std::move(others));
}

void EtcdMembership::log_changes(const std::vector<peer::RollEntry>& now) const {
  for (const peer::RollEntry& entry : missing_in(roll_, now)) {
    spdlog::info("member '{}' at {}", entry.member.node, entry.member.url);
  }
  for (const peer::RollEntry& entry : missing_in(now, roll_)) {
    spdlog::info("no longer a member: '{}' at {}", entry.member.node, entry.member.url);
  }
}

milliseconds EtcdMembership::pause() {
  const milliseconds regular = options_.ttl / 3;
  const milliseconds backed_off =
      first_pause * (1U << std::min(failures_ > 0 ? failures_ - 1 : 0, doublings_max));
  const milliseconds most = failures_ == 0 ? regular : std::min(regular, backed_off);
  // Nodes that were cut off together do not come back in step.
  return milliseconds(
      std::uniform_int_distribution<milliseconds::rep>(most.count() * 3 / 4, most.count())(jitter_));
}

}  // namespace spoor::daemon
