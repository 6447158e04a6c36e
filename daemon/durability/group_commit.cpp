#include "daemon/durability/group_commit.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "daemon/process/task.h"
#include "tracker/errors.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::seconds write_max{10};

}  // namespace

GroupCommit::GroupCommit(asio::io_context& context, asio::thread_pool& pool,
                         tracker::Persistence& persistence, SnapshotScheduler& snapshot_scheduler,
                         const base::Clock& clock, Timers& timers)
    : context_(context),
      pool_(pool),
      persistence_(persistence),
      snapshot_scheduler_(snapshot_scheduler),
      clock_(clock),
      finished_(context, asio::steady_timer::time_point::max()),
      watchdog_(timers.make()) {}

asio::awaitable<base::Result<>> GroupCommit::wait(tracker::JournalPosition position) {
  while (persistence_.durable_position() < position) {
    if (auto why = health_error(); !why.empty())
      co_return base::Error(tracker::Errc::not_durable, std::move(why));
    if (!std::exchange(running_, true)) {
      started_at_ = clock_.steady_now();
      asio::co_spawn(context_, commit(), rethrow);
    }
    co_await finished_.async_wait(as_result);
  }
  co_return base::Result<>();
}

std::string GroupCommit::health_error() const {
  if (running_ && clock_.steady_now() - started_at_ >= write_max) {
    return fmt::format("a write to the journal in node.data_dir has not finished for {} s",
                       std::chrono::floor<std::chrono::seconds>(clock_.steady_now() - started_at_).count());
  }
  return persistence_.journal_status().error;
}

asio::awaitable<void> GroupCommit::commit() {
  asio::co_spawn(context_, watch(), rethrow);
  const auto done = co_await run_on(pool_, [&persistence = persistence_] { return persistence.commit(); });
  watchdog_->cancel();
  running_ = false;
  if (!done) {
    spdlog::error("marks are not acknowledged: {}", done.error().message);
    snapshot_scheduler_.retry_journal();
  } else if (persistence_.wants_save()) {
    snapshot_scheduler_.free_journal();
  }
  finished_.cancel();
}

// Wakes the coroutines in wait() if the write hangs; they return an error.
asio::awaitable<void> GroupCommit::watch() {
  const bool has_passed = co_await watchdog_->wait(write_max);
  if (has_passed) finished_.cancel();
}

}  // namespace spoor::daemon
