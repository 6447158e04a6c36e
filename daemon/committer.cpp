#include "daemon/committer.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "daemon/task.h"
#include "tracker/errors.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::seconds write_max{10};

asio::awaitable<base::Result<>> write(tracker::Persistence& persistence) { co_return persistence.commit(); }

}  // namespace

Committer::Committer(asio::io_context& context, asio::thread_pool& pool, tracker::Persistence& persistence,
                     Saver& saver, const base::Clock& clock, Timers& timers)
    : context_(context),
      pool_(pool),
      persistence_(persistence),
      saver_(saver),
      clock_(clock),
      finished_(context, asio::steady_timer::time_point::max()),
      watchdog_(timers.make()) {}

asio::awaitable<base::Result<>> Committer::wait(tracker::JournalPosition position) {
  while (persistence_.durable_position() < position) {
    if (auto why = trouble(); !why.empty()) co_return base::Error(tracker::Errc::not_durable, std::move(why));
    if (!std::exchange(running_, true)) {
      started_at_ = clock_.steady_now();
      asio::co_spawn(context_, commit(), rethrow);
    }
    co_await finished_.async_wait(as_result);
  }
  co_return base::Result<>();
}

std::string Committer::trouble() const {
  if (running_ && clock_.steady_now() - started_at_ >= write_max) {
    return fmt::format("the journal in node.data_dir has not taken a write for {} s",
                       std::chrono::floor<std::chrono::seconds>(clock_.steady_now() - started_at_).count());
  }
  return persistence_.journal_status().error;
}

asio::awaitable<void> Committer::commit() {
  asio::co_spawn(context_, watch(), rethrow);
  const auto done = co_await asio::co_spawn(pool_, write(persistence_), asio::use_awaitable);
  watchdog_->cancel();
  running_ = false;
  if (!done) {
    spdlog::error("marks are not acknowledged: {}", done.error().message);
    saver_.mend_journal();
  } else if (persistence_.wants_save()) {
    saver_.free_journal();
  }
  finished_.cancel();
}

// Those who wait for a write that hangs are refused.
asio::awaitable<void> Committer::watch() {
  const bool has_passed = co_await watchdog_->wait(write_max);
  if (has_passed) finished_.cancel();
}

}  // namespace spoor::daemon
