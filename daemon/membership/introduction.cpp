#include "daemon/membership/introduction.h"

#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <utility>

#include "daemon/process/task.h"
#include "tracker/cycles/member_marks.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds patience{5'000};  // less than a writer waits

}  // namespace

Introduction::Introduction(asio::io_context& context, asio::thread_pool& pool,
                           tracker::Persistence& persistence, std::string node, const base::Clock& clock,
                           Timers& timers)
    : context_(context),
      pool_(pool),
      persistence_(persistence),
      id_{std::move(node), persistence.tracker().status().instance},
      clock_(clock),
      started_at_(clock.steady_now()),
      opened_(context, asio::steady_timer::time_point::max()),
      patience_(timers.make()) {}

std::optional<tracker::Joined> Introduction::self() const {
  if (!is_member()) return std::nullopt;
  return tracker::Joined{id_, tracker::run_of(persistence_.runs(), clock_.steady_now() - started_at_)};
}

tracker::JournalPosition Introduction::record(const tracker::Joined& member) {
  if (member.id == id_) return 0;
  const tracker::Mark joined = tracker::joined_mark(member);
  return persistence_.tracker().mark({&joined, 1}).position;
}

asio::awaitable<base::Result<>> Introduction::note(tracker::Membership membership) {
  auto done = co_await run_on(pool_, [this, membership] { return persistence_.note_membership(membership); });
  if (!is_member()) stop();
  co_return done;
}

void Introduction::open_alone() { is_open_ = true; }

void Introduction::close_alone() { is_open_ = is_open_ && persistence_.is_introduced(); }

asio::awaitable<void> Introduction::take(std::vector<tracker::PeerId> met, bool is_alone) {
  for (const tracker::PeerId& member : met) record({member, 0});
  if (!met.empty() && !persistence_.is_introduced()) {
    const auto noted = co_await run_on(pool_, [this] { return persistence_.note_introduced(); });
    if (!noted) {
      spdlog::error("that other members have recorded this node is not stored: {}", noted.error().message);
      co_return;
    }
  }
  if (is_open_ || !(is_alone || persistence_.is_introduced())) co_return;
  is_open_ = true;
  if (!met.empty()) spdlog::info("node '{}' has recorded this one: marks are acknowledged", met.front().name);
  stop();
}

asio::awaitable<std::string> Introduction::wait() {
  if (is_open() || !is_member()) co_return error();
  if (!std::exchange(is_waited_for_, true)) asio::co_spawn(context_, end_waiting(), rethrow);
  co_await opened_.async_wait(as_result);
  co_return error();
}

asio::awaitable<void> Introduction::end_waiting() {
  co_await patience_->wait(patience);
  is_waited_for_ = false;
  if (!is_open() && !std::exchange(is_logged_, true)) spdlog::warn("marks are not acknowledged: {}", error());
  opened_.cancel();
}

void Introduction::stop() {
  patience_->cancel();
  opened_.cancel();
}

std::string Introduction::error() const {
  if (!is_member()) {
    return "this node retires, or has retired: use another member of the cluster. Once 'spoor members "
           "retire' "
           "has succeeded, a restart begins a new member";
  }
  if (is_open_) return {};
  return "this node is new, and no other member of the cluster has recorded it yet: if it were lost, no scan "
         "would know of its marks. It acknowledges marks once one of them responds; if there is none, empty "
         "`peers`";
}

}  // namespace spoor::daemon
