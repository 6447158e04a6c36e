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
                           tracker::Persistence& persistence, tracker::Joined self, Timers& timers)
    : context_(context),
      pool_(pool),
      persistence_(persistence),
      self_(std::move(self)),
      opened_(context, asio::steady_timer::time_point::max()),
      patience_(timers.make()) {}

tracker::JournalPosition Introduction::record(const tracker::Joined& member) {
  if (member.id == self_.id) return 0;
  const tracker::Mark joined = tracker::joined_mark(member);
  return persistence_.tracker().mark({&joined, 1}).position;
}

base::Result<> Introduction::open() {
  auto noted = persistence_.note_introduced();
  if (noted) is_open_ = true;
  return noted;
}

void Introduction::open_alone() {
  // If it fails, the first round repeats it.
  static_cast<void>(open());
}

asio::awaitable<void> Introduction::take(std::vector<tracker::PeerId> met, bool is_alone) {
  for (const tracker::PeerId& member : met) record({member, 0});
  const bool may_open = !met.empty() || is_alone || persistence_.is_introduced();
  if (is_open_ || !may_open) co_return;
  const auto opened = co_await run_on(pool_, [this] { return open(); });
  if (!opened) {
    spdlog::error("marks are not acknowledged: {}", opened.error().message);
    co_return;
  }
  if (!met.empty()) spdlog::info("node '{}' has recorded this one: marks are acknowledged", met.front().name);
  stop();
}

asio::awaitable<std::string> Introduction::wait() {
  if (is_open_) co_return std::string();
  if (!std::exchange(is_waited_for_, true)) asio::co_spawn(context_, end_waiting(), rethrow);
  co_await opened_.async_wait(as_result);
  co_return error();
}

asio::awaitable<void> Introduction::end_waiting() {
  co_await patience_->wait(patience);
  is_waited_for_ = false;
  opened_.cancel();
}

void Introduction::stop() {
  patience_->cancel();
  opened_.cancel();
}

std::string Introduction::error() const {
  if (is_open_) return {};
  return "this node is new, and no other member of the cluster has recorded it yet: if it were lost, no scan "
         "would know "
         "of its marks. It acknowledges marks once one of them responds; if there is none, empty `peers`";
}

}  // namespace spoor::daemon
