#include "daemon/membership/introduction.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <utility>

#include "daemon/process/task.h"
#include "tracker/cycles/member_marks.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds patience{5'000};  // less than a writer waits
constexpr tracker::KnownAt never{base::SteadyTime(base::SteadyTime::duration::min() / 2),
                                 base::WallTime(base::WallTime::duration::min() / 2)};
constexpr std::chrono::minutes just_now{1};   // two rounds
constexpr std::chrono::minutes pause_max{2};  // between two times at which it is listed without a break
constexpr int notes_per_known_for = 8;        // a note is older than the truth by that part of it

}  // namespace

Introduction::Introduction(asio::io_context& context, asio::thread_pool& pool,
                           tracker::Persistence& persistence, std::string node,
                           std::chrono::nanoseconds known_for, const base::Clock& clock, Timers& timers)
    : context_(context),
      pool_(pool),
      persistence_(persistence),
      id_{std::move(node), persistence.tracker().status().instance},
      clock_(clock),
      known_for_(known_for),
      known_steady_(persistence.known_at().value_or(never).steady),
      known_wall_(persistence.known_at().value_or(never).wall),
      recorded_at_(never),
      must_be_recorded_(!is_known()),
      opened_(context, asio::steady_timer::time_point::max()),
      patience_(timers.make()) {}

std::optional<tracker::Joined> Introduction::self() const {
  if (!is_member()) return std::nullopt;
  return tracker::Joined{id_, tracker::run_of(persistence_.runs(), periods_.load())};
}

// The steady clock stops while the machine sleeps, and the wall clock may be set: the longer time counts.
std::chrono::nanoseconds Introduction::since(const tracker::KnownAt& at) const {
  const auto [steady, wall] = now();
  return std::max<std::chrono::nanoseconds>(steady - at.steady, wall - at.wall);
}

bool Introduction::is_known() const { return since({known_steady_, known_wall_}) < known_for_.load(); }

// Scans may have found it listed no longer.
bool Introduction::is_paused() const {
  return known_for_.load() != std::chrono::nanoseconds::max() &&
         since({known_steady_, known_wall_}) > pause_max;
}

void Introduction::begin_round() {
  const std::chrono::nanoseconds period = std::clamp<std::chrono::nanoseconds>(
      known_for_.load() / 2, std::chrono::minutes(1), std::chrono::hours(1));
  const auto now = clock_.steady_now();
  if (!period_began_at_) period_began_at_ = now;
  is_round_anew_ = must_be_recorded_ || !is_known() || is_paused();
  if (now - *period_began_at_ < period && !is_round_anew_) return;
  period_began_at_ = now;
  ++periods_;
}

// That it is listed again may escape the scans that count its silence; a new record does not.
void Introduction::know(const tracker::KnownAt& at) {
  if (is_known() && is_paused() && since(recorded_at_) > just_now) return;
  if (!is_known()) {
    must_be_recorded_ = since(recorded_at_) > just_now;
    is_open_ = false;
  }
  known_steady_ = at.steady;
  known_wall_ = at.wall;
  open_if_may(false);
}

// Not before a round has ended: others may have evicted it.
void Introduction::open_if_may(bool is_alone) {
  const bool may_be_read = is_alone || persistence_.is_introduced();
  if (is_open_ || !has_asked_ || must_be_recorded_ || !is_known() || !may_be_read) return;
  is_open_ = true;
  if (std::exchange(is_logged_, false)) spdlog::info("marks are acknowledged");
  stop();
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

void Introduction::open_alone() {
  know(now());
  is_open_ = true;
}

void Introduction::close_alone() { is_open_ = is_open_ && persistence_.is_introduced(); }

// A note that can't be written costs nothing but for a first introduction: after a restart, the node waits
// until it is known again.
base::Result<> Introduction::note(bool is_met) {
  const tracker::KnownAt known{known_steady_, known_wall_};
  const bool is_first = is_met && !persistence_.is_introduced();
  const bool is_old = known.steady - persistence_.known_at().value_or(never).steady >=
                      known_for_.load() / notes_per_known_for;
  if (!is_first && !is_old) return {};
  auto noted = persistence_.note_known(known, is_met);
  if (noted) return noted;
  spdlog::error("that the cluster knows this node is not stored: {}", noted.error().message);
  return is_first ? noted : base::Result<>();
}

asio::awaitable<void> Introduction::take(Round round) {
  for (const tracker::PeerId& member : round.met) record({member, 0});
  const bool is_first = !persistence_.is_introduced();
  const bool is_met = !round.met.empty();
  // Others may have joined since the source was read, if it does not know this node now.
  if (is_met || (round.is_alone && (round.is_listed || is_known()))) {
    recorded_at_ = round.began_at;
    must_be_recorded_ = must_be_recorded_ && !is_round_anew_;
  }
  if (round.is_listed || (round.are_all && is_met)) know(round.began_at);
  const auto noted = co_await run_on(pool_, [this, is_met] { return note(is_met); });
  if (!noted) co_return;
  if (is_first && is_met) spdlog::info("node '{}' has recorded this one", round.met.front().name);
  has_asked_ = true;
  open_if_may(round.is_alone);
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
  if (is_open_ && is_known()) return {};
  const std::string and_so = source_error_.empty() ? "" : "; " + source_error_;
  if (persistence_.is_introduced() || is_open_) {
    return "no source has listed this node, or no other member has recorded it since, for so long that scans "
           "of others may no longer expect it (peers.forget_after). It acknowledges marks once both are so" +
           and_so;
  }
  return "this node is new, and no other member of the cluster has recorded it yet: if it were lost, no scan "
         "would know of its marks. It acknowledges marks once one of them responds; if there is none, empty "
         "`peers`" +
         and_so;
}

}  // namespace spoor::daemon
