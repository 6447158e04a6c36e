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
                           tracker::Persistence& persistence, tracker::PeerId self, Timers& timers)
    : context_(context),
      pool_(pool),
      persistence_(persistence),
      self_(std::move(self)),
      opened_(context, asio::steady_timer::time_point::max()),
      patience_(timers.make()) {}

tracker::JournalPosition Introduction::record(const tracker::PeerId& member) {
  if (member == self_) return 0;
  const tracker::Mark joined = tracker::joined_mark(member);
  return persistence_.tracker().mark({&joined, 1}).position;
}

asio::awaitable<void> Introduction::take(std::vector<tracker::PeerId> met, bool is_alone) {
  for (const tracker::PeerId& member : met) record(member);
  if (persistence_.is_introduced() || (met.empty() && !is_alone)) co_return;
  const auto noted = co_await run_on(pool_, [this] { return persistence_.note_introduced(); });
  if (!noted) {
    spdlog::error("marks are not acknowledged: {}", noted.error().message);
    co_return;
  }
  if (!met.empty()) spdlog::info("node '{}' has recorded this one: marks are acknowledged", met.front().name);
  patience_->cancel();
  opened_.cancel();
}

asio::awaitable<std::string> Introduction::wait() {
  if (persistence_.is_introduced()) co_return std::string();
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
  if (persistence_.is_introduced()) return {};
  return "this node is new, and no other member of the cluster has recorded it yet: if it were lost, no scan "
         "would know "
         "of its marks. It acknowledges marks once one of them responds; if there is none, empty `peers`";
}

}  // namespace spoor::daemon
