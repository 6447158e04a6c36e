#include "daemon/durability/snapshot_scheduler.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <system_error>
#include <utility>

#include "base/printable.h"
#include "daemon/process/task.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds first_retry{1'000};
constexpr unsigned retry_doublings_max = 3;

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
      drive_timer_(timers.make()),
      finished_(context, asio::steady_timer::time_point::max()),
      check_timer_(timers.make()),
      checked_(context, asio::steady_timer::time_point::max()),
      threads_(context, persistence.drives().count()) {}

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
  const auto snapshot =
      co_await run_on(pool_, [&persistence = persistence_] { return persistence.begin_save(); });
  auto saved = co_await save_to_drives(snapshot);
  co_await run_on(pool_, [&persistence = persistence_, &saved, covered = snapshot->position] {
    persistence.finish_save(saved, covered);
  });
  const tracker::SavedSnapshot& taken = take(std::move(saved), position);
  finish_save();
  co_return taken;
}

asio::awaitable<tracker::SavedSnapshot> SnapshotScheduler::save_to_drives(
    std::shared_ptr<const tracker::PreparedSnapshot> snapshot) {
  const auto round = std::make_shared<SaveRound>();
  round->begun_at = clock_.steady_now();
  round->states.resize(persistence_.drives().count());
  for (std::size_t drive = 0; drive < round->states.size(); ++drive) {
    if (threads_.is_late(drive)) continue;
    ++round->running;
    threads_.run(
        drive,
        [&persistence = persistence_, drive, snapshot] { return persistence.save_to(drive, *snapshot); },
        [this, round, drive](tracker::DriveState saved) { finish_drive(*round, drive, std::move(saved)); });
  }
  while (const auto left = wait_left(*round)) co_await drive_timer_->wait(*left);
  round->is_over = true;
  tracker::SavedSnapshot saved = snapshot->on_no_drive();
  for (std::size_t drive = 0; drive < round->states.size(); ++drive) {
    auto& finished = round->states[drive];
    if (!finished) threads_.set_late(drive);
    saved.drives.push_back(finished ? *std::move(finished) : hanging_state(drive, response_max));
  }
  co_return saved;
}

void SnapshotScheduler::finish_drive(SaveRound& round, std::size_t drive, tracker::DriveState saved) {
  if (round.is_over) {
    if (!saved.put_aside.empty()) spdlog::warn("{}", saved.put_aside);
    spdlog::warn("drive {} responds again: {}", base::printable(saved.drive.native()),
                 saved.ok ? "the next save includes it" : saved.error);
    return;
  }
  --round.running;
  round.is_some_finished = true;
  if (saved.ok && !round.first_taken_at) round.first_taken_at = clock_.steady_now();
  round.states[drive] = std::move(saved);
  drive_timer_->cancel();
}

// The bound begins when the first drive has taken the snapshot: drives that are all slow, under load or with
// a large snapshot, are not considered hanging. std::nullopt: the save waits no longer.
std::optional<std::chrono::milliseconds> SnapshotScheduler::wait_left(const SaveRound& round) const {
  if (round.running == 0) return std::nullopt;
  const auto left =
      until(round.first_taken_at ? *round.first_taken_at + response_max : round.begun_at + save_max);
  if (left.count() > 0) return left;
  if (round.is_some_finished || stopped_) return std::nullopt;
  return save_max;
}

std::chrono::milliseconds SnapshotScheduler::until(base::SteadyTime time) const {
  return std::chrono::ceil<std::chrono::milliseconds>(time - clock_.steady_now());
}

tracker::DriveState SnapshotScheduler::hanging_state(std::size_t drive, std::chrono::seconds time) const {
  return persistence_.drives().failed_state(
      drive, fmt::format("does not respond within {} s: the disk hangs", time.count()));
}

// One at a time, and none beside a save.
asio::awaitable<base::Result<>> SnapshotScheduler::run_on_drive(
    std::size_t drive, std::function<base::Result<>()> job,
    std::function<void(const base::Result<>&)> ended_late) {
  co_await wait_until_idle();
  const auto done = std::make_shared<std::optional<base::Result<>>>();
  const auto late_at = clock_.steady_now() + response_max;
  if (!threads_.is_late(drive)) {
    threads_.run(drive, std::move(job),
                 [this, done, late_at, ended_late = std::move(ended_late)](base::Result<> result) {
                   if (until(late_at).count() <= 0) return ended_late(result);
                   *done = std::move(result);
                   drive_timer_->cancel();
                 });
    while (!*done && until(late_at).count() > 0) co_await drive_timer_->wait(until(late_at));
    if (!*done) threads_.set_late(drive);
  }
  finish_save();
  if (*done) co_return **done;
  co_return base::Error(std::make_error_code(std::errc::timed_out), hanging_state(drive, response_max).error);
}

asio::awaitable<base::Result<>> SnapshotScheduler::accept_drive(std::filesystem::path path) {
  const auto found = persistence_.drives().find(path);
  if (!found) co_return found.error();
  const std::size_t drive = *found;
  auto accepting = run_on_drive(
      drive, [&persistence = persistence_, drive] { return persistence.accept_drive(drive); },
      [this, drive](const base::Result<>& late) { finish_late_acceptance(drive, late); });
  const base::Result<> accepted = co_await std::move(accepting);
  if (accepted) co_await save();
  co_return accepted;
}

asio::awaitable<base::Result<>> SnapshotScheduler::stamp_drive(std::filesystem::path path,
                                                               tracker::DriveStamp stamp) {
  const auto found = persistence_.drives().find(path);
  if (!found) co_return found.error();
  const std::size_t drive = *found;
  auto writing = run_on_drive(
      drive,
      [&drives = persistence_.drives(), drive, stamp = std::move(stamp)] {
        return drives.stamp(drive, stamp);
      },
      [](const base::Result<>&) {});
  const base::Result<> written = co_await std::move(writing);
  co_return written;
}

// The caller was told that the drive does not respond.
void SnapshotScheduler::finish_late_acceptance(std::size_t drive, const base::Result<>& accepted) {
  const std::string path = base::printable(persistence_.drives().failed_state(drive, {}).drive.native());
  if (accepted) {
    spdlog::warn("drive {} responds again, and is accepted", path);
    save_soon();
  } else {
    spdlog::warn("drive {} responds again, and is not accepted: {}", path, accepted.error().message);
  }
}

asio::awaitable<std::vector<tracker::DriveState>> SnapshotScheduler::check_drives() {
  const auto round = check_ ? check_ : begin_check();
  while (!round->is_over) co_await checked_.async_wait(as_result);
  std::vector<tracker::DriveState> states;
  bool is_some_back = false;
  for (std::size_t i = 0; i < round->states.size(); ++i) {
    states.push_back(*round->states[i]);
    if (!last_ || last_->drives[i].ok || !states[i].ok) continue;
    const bool is_back = last_->drives[i].is_refused && !states[i].id.empty();
    if (!is_back) states[i] = last_->drives[i];
    is_some_back = is_some_back || is_back;
  }
  if (is_some_back) save_soon();
  co_return states;
}

void SnapshotScheduler::touch(const std::filesystem::path& drive, const std::string& name,
                              std::function<void(const base::Result<>&)> done) {
  const auto found = persistence_.drives().find(drive);
  base::Result<std::size_t> usable = found;
  if (found && threads_.is_late(*found))
    usable =
        base::Error(std::make_error_code(std::errc::timed_out), hanging_state(*found, response_max).error);
  if (!usable) {
    asio::post(context_, [done = std::move(done), error = usable.error()] { done(error); });
    return;
  }
  threads_.run(
      *found, [&drives = persistence_.drives(), at = *found, name] { return drives.touch(at, name); },
      std::move(done));
}

// A drive that is being saved to is not read: the save reads it, and may take longer than a check.
std::shared_ptr<SnapshotScheduler::Round> SnapshotScheduler::begin_check() {
  const auto round = check_ = std::make_shared<Round>();
  round->states.resize(persistence_.drives().count());
  for (std::size_t drive = 0; drive < round->states.size(); ++drive) {
    if (threads_.is_late(drive)) continue;
    if (last_ && threads_.is_busy(drive)) {
      round->states[drive] = last_->drives[drive];
      continue;
    }
    ++round->running;
    threads_.run(
        drive, [&drives = persistence_.drives(), drive] { return drives.check(drive); },
        [this, round, drive](tracker::DriveState state) {
          if (round->is_over) return;
          round->states[drive] = std::move(state);
          if (--round->running == 0) end_check();
        });
  }
  if (round->running == 0) {
    end_check();
  } else {
    asio::co_spawn(context_, bound_check(round), rethrow);
  }
  return round;
}

void SnapshotScheduler::end_check() {
  for (std::size_t drive = 0; drive < check_->states.size(); ++drive) {
    if (check_->states[drive]) continue;
    threads_.set_late(drive);
    check_->states[drive] = hanging_state(drive, check_max);
  }
  check_->is_over = true;
  check_.reset();
  check_timer_->cancel();
  checked_.cancel();
}

asio::awaitable<void> SnapshotScheduler::bound_check(std::shared_ptr<const Round> round) {
  co_await check_timer_->wait(check_max);
  if (!round->is_over) end_check();
}

asio::awaitable<base::Result<tracker::SavedSnapshot>> SnapshotScheduler::save_last() {
  auto saved = co_await save();
  if (!saved.durable()) co_return saved;
  const auto done = co_await run_on(
      pool_, [&persistence = persistence_, &saved] { return persistence.record_stop(saved); });
  if (!done) co_return done.error();
  co_return saved;
}

const tracker::SavedSnapshot& SnapshotScheduler::take(tracker::SavedSnapshot saved,
                                                      tracker::JournalPosition position) {
  for (const tracker::DriveState& drive : saved.drives) {
    if (!drive.put_aside.empty()) spdlog::warn("{}", drive.put_aside);
  }
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
  drive_timer_->cancel();
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
