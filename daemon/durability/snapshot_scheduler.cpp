#include "daemon/durability/snapshot_scheduler.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/printable.h"
#include "daemon/process/task.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds first_retry{1'000};
constexpr unsigned retry_doublings_max = 3;
constexpr std::chrono::minutes save_max{1};

}  // namespace

SnapshotScheduler::SnapshotScheduler(asio::io_context& context, asio::thread_pool& pool,
                                     tracker::Persistence& persistence, const base::Clock& clock,
                                     Timers& timers, std::chrono::milliseconds interval)
    : context_(context),
      pool_(pool),
      persistence_(persistence),
      clock_(clock),
      interval_(interval),
      timer_(timers.make()),
      finished_(context, asio::steady_timer::time_point::max()),
      check_timer_(timers.make()),
      checked_(context, asio::steady_timer::time_point::max()) {}

asio::awaitable<void> SnapshotScheduler::wait_until_idle() {
  while (running_) co_await finished_.async_wait(as_result);
  running_ = true;
  started_at_ = clock_.steady_now();
}

void SnapshotScheduler::finish_save() {
  running_ = false;
  finished_.cancel();
}

asio::awaitable<tracker::SavedSnapshot> SnapshotScheduler::save() {
  co_await wait_until_idle();
  const tracker::JournalPosition position = persistence_.tracker().position();
  auto saved = co_await run_on(pool_, [&persistence = persistence_] { return persistence.save(); });
  const tracker::SavedSnapshot& taken = take(std::move(saved), position);
  finish_save();
  co_return taken;
}

asio::awaitable<base::Result<>> SnapshotScheduler::accept_drive(std::filesystem::path drive) {
  co_await wait_until_idle();
  auto done = co_await run_on(
      pool_, [&persistence = persistence_, &drive] { return persistence.accept_drive(drive); });
  finish_save();
  if (done) co_await save();
  co_return done;
}

asio::awaitable<void> SnapshotScheduler::run_check() {
  found_ = co_await run_on(pool_, [&persistence = persistence_, &checking = checking_] {
    return persistence.check_drives(checking);
  });
  is_checking_ = false;
  check_timer_->cancel();
  checked_.cancel();
}

asio::awaitable<void> SnapshotScheduler::bound_check() {
  const std::uint64_t check = checks_;
  const bool has_passed = co_await check_timer_->wait(check_max);
  if (!has_passed || check != checks_) co_return;  // the next check may have begun meanwhile
  is_check_late_ = true;
  checked_.cancel();
}

asio::awaitable<std::vector<tracker::DriveState>> SnapshotScheduler::check_drives() {
  if (!std::exchange(is_checking_, true)) {
    checking_ = std::numeric_limits<std::size_t>::max();  // no drive yet
    is_check_late_ = false;
    ++checks_;
    asio::co_spawn(context_, bound_check(), rethrow);
    asio::co_spawn(context_, run_check(), rethrow);
  }
  if (!is_check_late_) co_await checked_.async_wait(as_result);
  if (is_checking_) co_return hanging_drives();
  std::vector<tracker::DriveState> states = found_;
  bool is_some_back = false;
  for (std::size_t i = 0; last_ && i < std::min(states.size(), last_->drives.size()); ++i) {
    const tracker::DriveState& saved = last_->drives[i];
    if (saved.ok || !states[i].ok) continue;
    const bool is_back = saved.is_refused && !states[i].id.empty();
    if (!is_back) states[i] = saved;
    is_some_back = is_some_back || is_back;
  }
  if (is_some_back) save_soon();
  co_return states;
}

// The states that the last save found, except that of the drive being read.
std::vector<tracker::DriveState> SnapshotScheduler::hanging_drives() const {
  std::vector<tracker::DriveState> states;
  if (last_) states = last_->drives;
  if (checking_ < states.size()) {
    states[checking_].ok = false;
    states[checking_].error = fmt::format("does not respond within {} s: the disk hangs", check_max.count());
  }
  return states;
}

void SnapshotScheduler::save_here() {
  const tracker::JournalPosition position = persistence_.tracker().position();
  take(persistence_.save(), position);
}

const tracker::SavedSnapshot& SnapshotScheduler::take(tracker::SavedSnapshot saved,
                                                      tracker::JournalPosition position) {
  for (const std::string& note : saved.put_aside) spdlog::warn("{}", note);
  for (const tracker::DriveState& drive : saved.drives) {
    if (!drive.ok) {
      spdlog::error("cannot save the snapshot to drive {}: {}", base::printable(drive.drive.native()),
                    drive.error);
    }
  }
  const std::string journal_error = persistence_.journal_status().error;
  if (saved.durable()) {
    saved_position_ = position;
    last_durable_ = saved;
    spdlog::debug("saved snapshot {} ({} bytes)", saved.generation, saved.bytes);
  } else {
    ++failures_total_;
    spdlog::error("no drive took the snapshot");
  }
  if (!journal_error.empty()) spdlog::error("marks are not acknowledged: {}", journal_error);
  if (saved.durable() && journal_error.empty()) {
    if (failures_ > 0) spdlog::info("saving works again: saved snapshot {}", saved.generation);
    failures_ = 0;
  } else {
    ++failures_;
    timer_->cancel();  // it may be waiting for the whole interval
  }
  return last_.emplace(std::move(saved));
}

std::vector<std::string> SnapshotScheduler::health_error() const {
  std::vector<std::string> reasons;
  const auto busy = clock_.steady_now() - started_at_;
  if (running_ && busy >= save_max) {
    reasons.push_back(fmt::format("a save has been under way for {} s: a disk hangs",
                                  std::chrono::floor<std::chrono::seconds>(busy).count()));
  }
  if (!last_ || last_->durable()) return reasons;
  for (const tracker::DriveState& drive : last_->drives) {
    reasons.push_back(fmt::format("drive {}: {}", base::printable(drive.drive.native()), drive.error));
  }
  return reasons;
}

void SnapshotScheduler::save_soon() {
  soon_ = true;
  timer_->cancel();
}

void SnapshotScheduler::free_journal() {
  if (!running_ && failures_ == 0) save_soon();
}

void SnapshotScheduler::retry_journal() {
  failures_ = std::max(failures_, 1U);
  timer_->cancel();
}

void SnapshotScheduler::start() { asio::co_spawn(context_, run(), rethrow); }

void SnapshotScheduler::stop() {
  stopped_ = true;
  timer_->cancel();
}

bool SnapshotScheduler::some_drive_missed_it() const {
  if (!last_) return false;
  return std::any_of(last_->drives.begin(), last_->drives.end(),
                     [](const tracker::DriveState& drive) { return !drive.ok; });
}

std::chrono::milliseconds SnapshotScheduler::pause() const {
  if (failures_ == 0) return interval_;
  return std::min<std::chrono::milliseconds>(
      interval_, first_retry * (1U << std::min(failures_ - 1, retry_doublings_max)));
}

asio::awaitable<void> SnapshotScheduler::run() {
  while (!stopped_) {
    if (!soon_) {
      const bool has_passed = co_await timer_->wait(pause());
      if (!has_passed && !stopped_ && !soon_) continue;
    }
    if (stopped_) break;
    soon_ = false;
    const bool has_news = saved_position_ != persistence_.tracker().position();
    if (has_news || failures_ > 0 || some_drive_missed_it()) co_await save();
  }
}

}  // namespace spoor::daemon
