#include "daemon/membership/retirement.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/printable.h"
#include "daemon/process/task.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using tracker::Membership;

// Short, since a stop waits for one of them.
constexpr std::chrono::milliseconds timeout_to_ask{4'000};
constexpr std::chrono::milliseconds timeout_to_adopt{10'000};
constexpr std::size_t offers_max = 4;

base::Error failure(std::errc code, std::string what) {
  return {std::make_error_code(code), std::move(what)};
}

// The node that has adopted the marks.
std::optional<std::string> adopter(const base::Result<peer::HttpResponse>& response) {
  if (!response || !response->is_success()) return std::nullopt;
  const auto json = peer::json_object(*response);
  const auto node = json.find("node");
  if (node == json.end() || !node->is_string() || node->get<std::string>().empty()) return std::nullopt;
  return node->get<std::string>();
}

base::Error closed(const std::string& why) {
  return failure(std::errc::timed_out, "marks are not acknowledged any more, retire this node again: " + why);
}

std::unique_ptr<peer::Transport> transport(const peer::MakeTransport& make,
                                           const peer::Credentials& credentials,
                                           std::chrono::milliseconds timeout) {
  return make(
      peer::HttpTransport::Options{.credentials = credentials, .timeout = timeout, .total_timeout = timeout});
}

}  // namespace

// What the members have said.
struct Retirement::Plan {
  tracker::CycleId from;
  std::vector<base::Endpoint> members;  // that responded
  std::vector<std::string> silent;      // URLs of the others
};

struct Retirement::Attempt {
  std::string adopted_by = {};  // empty: no member has the marks for certain
  bool is_certain = true;       // no member may have them, of those that are not named
  std::vector<std::string> problems = {};
};

Retirement::Retirement(asio::thread_pool& pool, Options options, tracker::Persistence& persistence,
                       Introduction& introduction, const PeerWatch& peers, EtcdMembership* etcd)
    : pool_(pool),
      options_(std::move(options)),
      persistence_(persistence),
      introduction_(introduction),
      peers_(peers),
      etcd_(etcd) {}

asio::awaitable<base::Result<Retirement::Done>> Retirement::retire() {
  if (persistence_.membership() == Membership::retired) co_return Done();
  if (std::exchange(is_retiring_, true))
    co_return failure(std::errc::operation_in_progress, "this node retires already");
  auto handing = hand_over();
  auto done = co_await std::move(handing);
  is_retiring_ = false;
  co_return done;
}

asio::awaitable<base::Result<Retirement::Done>> Retirement::hand_over() {
  const auto credentials = peers_.credentials();
  const auto members = peers_.endpoints();
  const Plan plan = co_await run_on(pool_, [&] { return ask(members, credentials); });
  if (members.empty()) {
    co_return failure(std::errc::connection_refused,
                      "there is no other member that could adopt the marks of this node");
  }
  if (plan.members.empty()) {
    co_return failure(std::errc::host_unreachable,
                      fmt::format("no other member responds: {}", fmt::join(plan.silent, "; ")));
  }
  const Membership before = persistence_.membership();
  const auto noted = co_await introduction_.note(Membership::retiring);
  if (!noted) co_return base::wrap("that this node retires is not stored", noted.error());
  const Attempt attempt = co_await run_on(pool_, [&] { return offer(plan, credentials); });
  if (!attempt.adopted_by.empty()) {
    const auto stored = co_await introduction_.note(Membership::retired);
    if (!stored)
      co_return closed(fmt::format("node '{}' has adopted the marks, but that is not stored: {}",
                                   attempt.adopted_by, stored.error().message));
    if (etcd_ != nullptr) etcd_->retire();
    spdlog::warn("retired: node '{}' has adopted the marks from cycle {} on", attempt.adopted_by,
                 plan.from.value);
    Done done{attempt.adopted_by, plan.from, plan.silent};
    co_return done;
  }
  const std::string problems = fmt::format("{}", fmt::join(attempt.problems, "; "));
  if (!attempt.is_certain || tracker::is_leaving(before))
    co_return closed("it is not known that another member has those of this node: " + problems);
  // Another member may have recorded it meanwhile.
  const Membership after = persistence_.is_introduced() ? Membership::member : before;
  const auto reopened = co_await introduction_.note(after);
  if (!reopened)
    co_return closed(
        fmt::format("no member adopts those of this node ({}), and that it stays a member is not "
                    "stored: {}",
                    problems, reopened.error().message));
  co_return failure(std::errc::connection_refused, "no member adopts the marks: " + problems);
}

// On the pool.
Retirement::Plan Retirement::ask(const std::vector<base::Endpoint>& members,
                                 const peer::Credentials& credentials) const {
  Plan plan;
  // Without a scan that needs more, what is marked now.
  plan.from = persistence_.tracker().status().current;
  const auto need = [&](const peer::UnreadFrom& from) {
    plan.from = std::min(plan.from, from.value_or(plan.from));
  };
  if (const auto own = options_.own_unread()) {
    need(*own);
  } else {
    plan.silent.push_back("this node: " + own.error().message);
  }
  std::vector<peer::HttpRequest> requests;
  requests.reserve(members.size());
  for (const base::Endpoint& member : members)
    requests.push_back(peer::unread_request(member, options_.node.cluster, introduction_.id()));
  std::vector<bool> responded(members.size());
  transport(options_.make_transport, credentials, timeout_to_ask)
      ->exchange(requests, [&](std::size_t index, const base::Result<peer::HttpResponse>& response) {
        const auto from = peer::read_unread(response);
        if (from) {
          need(*from);
        } else {
          plan.silent.push_back(fmt::format("{}: {}", members[index].to_string(), from.error().message));
        }
        responded[index] = from.has_value();
      });
  for (std::size_t at = 0; at < members.size(); ++at) {
    if (responded[at]) plan.members.push_back(members[at]);
  }
  return plan;
}

// On the pool. What is copied here holds all marks that were acknowledged, since none is any more.
Retirement::Attempt Retirement::offer(const Plan& plan, const peer::Credentials& credentials) const {
  const tracker::Retired retired{tracker::last_run_of(persistence_.runs()), plan.from};
  peer::CycleFrame frame{options_.node, options_.run, options_.rules_digest, {}, true};
  frame.answer.instance = introduction_.id().instance;
  frame.answer.current = persistence_.tracker().status().current;
  frame.answer.marks = peer::marks_to_hand_over(persistence_.tracker(), plan.from);
  Attempt attempt;
  const auto sender = transport(options_.make_transport, credentials, timeout_to_adopt);
  const auto send = [&](const base::Endpoint& member, const peer::CycleFrame& what) {
    return peer::exchange(*sender, peer::adopt_request(member, what, retired));
  };
  for (const base::Endpoint& member : plan.members) {
    if (is_stopped_ || attempt.problems.size() >= offers_max) break;
    auto response = send(member, frame);
    if (response && response->status == 413) {
      peer::CycleFrame all = frame;
      all.answer.marks = peer::everything(frame.answer.marks);
      response = send(member, all);
    }
    if (const auto node = adopter(response)) {
      attempt.adopted_by = base::printable(*node);
      return attempt;
    }
    const bool is_refusal = response && response->status >= 400 && response->status < 500;
    attempt.is_certain = attempt.is_certain && is_refusal;
    attempt.problems.push_back(
        response ? fmt::format("{}: {}", member.to_string(), peer::problem_detail(*response))
                 : response.error().message);
  }
  return attempt;
}

}  // namespace spoor::daemon
