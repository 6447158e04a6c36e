#include "daemon/saver.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "daemon/task.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds first_retry{1'000};
constexpr unsigned retry_doublings_max = 6;

asio::awaitable<tracker::SavedSnapshot> write(tracker::SnapshotStore& store, tracker::TrackerState state,
                                              base::WallTime now) {
  co_return store.save(state, now);
}

}  // namespace

Saver::Saver(asio::io_context& context, asio::thread_pool& pool, tracker::SnapshotStore& store,
             const tracker::Tracker& tracker, const base::Clock& clock, std::chrono::milliseconds interval)
    : context_(context),
      pool_(pool),
      store_(store),
      tracker_(tracker),
      clock_(clock),
      interval_(interval),
      timer_(context),
      finished_(context, asio::steady_timer::time_point::max()) {}

asio::awaitable<tracker::SavedSnapshot> Saver::save() {
  while (running_) co_await finished_.async_wait(as_result);
  running_ = true;
  const std::uint64_t version = tracker_.version();
  auto saved =
      co_await asio::co_spawn(pool_, write(store_, tracker_.state(), clock_.wall_now()), asio::use_awaitable);
  running_ = false;
  const tracker::SavedSnapshot& taken = take(std::move(saved), version);
  finished_.cancel();
  co_return taken;
}

const tracker::SavedSnapshot& Saver::save_here() {
  const std::uint64_t version = tracker_.version();
  return take(store_.save(tracker_.state(), clock_.wall_now()), version);
}

const tracker::SavedSnapshot& Saver::take(tracker::SavedSnapshot saved, std::uint64_t version) {
  for (const tracker::DriveState& drive : saved.drives) {
    if (!drive.ok)
      spdlog::error("cannot save the snapshot to drive {}: {}", drive.drive.native(), drive.error);
  }
  if (saved.durable()) {
    failures_ = 0;
    saved_version_ = version;
    last_durable_ = saved;
    spdlog::debug("saved snapshot {} ({} bytes)", saved.generation, saved.bytes);
  } else {
    ++failures_;
    timer_.cancel();  // it may stand at the whole interval
    spdlog::error("no drive took the snapshot");
  }
  return last_.emplace(std::move(saved));
}

bool Saver::has_news() const { return saved_version_ != tracker_.version(); }

void Saver::save_soon() {
  soon_ = true;
  timer_.cancel();
}

void Saver::start() { asio::co_spawn(context_, run(), rethrow); }

void Saver::stop() {
  stopped_ = true;
  timer_.cancel();
}

asio::awaitable<void> Saver::run() {
  while (!stopped_) {
    if (!soon_) {
      const auto retry = first_retry * (1U << std::min(failures_ - 1, retry_doublings_max));
      timer_.expires_after(failures_ == 0 ? interval_
                                          : std::min<std::chrono::milliseconds>(interval_, retry));
      const auto [cancelled] = co_await timer_.async_wait(as_result);
      if (cancelled && !stopped_ && !soon_) continue;
    }
    if (stopped_) break;
    soon_ = false;
    if (has_news() || failures_ > 0) co_await save();
  }
}

}  // namespace spoor::daemon
