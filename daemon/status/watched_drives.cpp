#include "daemon/status/watched_drives.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"

namespace spoor::daemon {

namespace asio = boost::asio;

namespace {

std::string error_of(const peer::WatchedDrive& report) {
  const bool has_error = report.is_watched || !report.error.empty();
  return has_error ? report.error : "spoor-watch does not watch it at present";
}

}  // namespace

WatchedDrives::WatchedDrives(Timers& timers, const base::Clock& clock,
                             std::vector<std::filesystem::path> drives,
                             std::vector<std::filesystem::path> watched, MakeCookie make_cookie)
    : timers_(timers),
      clock_(clock),
      drives_(std::move(drives)),
      watched_(std::move(watched)),
      make_cookie_(std::move(make_cookie)),
      started_at_(clock.steady_now()),
      started_wall_at_(clock.wall_now()) {}

bool WatchedDrives::Round::is_over() const { return std::ranges::all_of(drives, &Waiting::is_over); }

void WatchedDrives::Round::end(Waiting& drive, std::string error) {
  if (drive.is_over) return;
  drive.is_over = true;
  drive.result.error = std::move(error);
  if (is_over()) timer->cancel();
}

bool WatchedDrives::has_drive(const std::filesystem::path& drive) const {
  return std::ranges::find(drives_, drive) != drives_.end();
}

base::Result<> WatchedDrives::report(peer::WatchedDrive report) {
  if (!has_drive(report.drive)) {
    return base::Error(std::make_error_code(std::errc::invalid_argument),
                       fmt::format("{} is not one of the drives of this node: restart spoord if its "
                                   "configuration has changed",
                                   base::printable(report.drive)));
  }
  for (const auto& round : rounds_) confirm(*round, report);
  const auto before = reports_.find(report.drive);
  Report entry{std::move(report), clock_.steady_now(), clock_.wall_now(), std::nullopt};
  if (!entry.drive.is_watched || !entry.drive.error.empty()) {
    const bool failed_before = before != reports_.end() && before->second.failing_since;
    entry.failing_since = failed_before ? before->second.failing_since : entry.wall_at;
  }
  reports_.insert_or_assign(entry.drive.drive, std::move(entry));
  return {};
}

void WatchedDrives::confirm(Round& round, const peer::WatchedDrive& report) {
  for (Waiting& drive : round.drives) {
    if (drive.result.drive != report.drive || drive.is_over) continue;
    if (!report.is_watched) {
      round.end(drive, error_of(report));
    } else if (report.cookie == drive.cookie && !report.gap.id.empty()) {
      drive.result.gap = report.gap;
      round.end(drive, {});
    }
  }
}

asio::awaitable<std::vector<peer::DriveSync>> WatchedDrives::synchronise(peer::SyncRequest request) {
  const auto round = std::make_shared<Round>();
  round->timer = timers_.make();
  for (std::string& drive : request.drives) {
    Waiting& waiting = round->drives.emplace_back();
    waiting.cookie = peer::new_cookie();
    if (!has_drive(drive)) {
      waiting.is_over = true;
      waiting.result.error = "spoord does not have this drive: restart it";
    } else if (const auto last = reports_.find(drive);
               last != reports_.end() && !last->second.drive.is_watched) {
      waiting.is_over = true;
      waiting.result.error = error_of(last->second.drive);
    }
    waiting.result.drive = std::move(drive);
  }
  rounds_.push_back(round);
  const base::SteadyTime deadline = clock_.steady_now() + request.timeout;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock_.steady_now());
    if (round->is_over() || left.count() <= 0 || is_stopped_) break;
    make_cookies(round);
    const auto pause = std::min<std::chrono::milliseconds>(left, cookie_interval);
    co_await round->timer->wait(pause);
  }
  rounds_.remove(round);
  std::vector<peer::DriveSync> results;
  for (Waiting& drive : round->drives) {
    if (!drive.is_over && is_stopped_) drive.result.error = "spoord stops";
    if (!drive.is_over && !is_stopped_)
      drive.result.error = fmt::format("spoor-watch did not respond within {:g} s",
                                       std::chrono::duration<double>(request.timeout).count());
    results.push_back(std::move(drive.result));
  }
  co_return results;
}

void WatchedDrives::make_cookies(const std::shared_ptr<Round>& round) {
  for (std::size_t at = 0; at < round->drives.size(); ++at) {
    Waiting& drive = round->drives[at];
    if (drive.is_over || std::exchange(drive.is_making, true)) continue;
    // A drive that hangs may call it after the end of the round, or of the daemon.
    make_cookie_(drive.result.drive, drive.cookie,
                 [waiting = std::weak_ptr(round), at](const base::Result<>& made) {
                   const auto open = waiting.lock();
                   if (!open) return;
                   open->drives[at].is_making = false;
                   if (!made) open->end(open->drives[at], made.error().message);
                 });
  }
}

void WatchedDrives::stop() {
  is_stopped_ = true;
  for (const auto& round : rounds_) round->timer->cancel();
}

std::string WatchedDrives::why_not_watched(const std::string& drive) const {
  const auto found = reports_.find(drive);
  const base::SteadyTime now = clock_.steady_now();
  if (found == reports_.end())
    return now - started_at_ > silence_max
               ? "spoor-watch has not reported since spoord started: is it started?"
               : "";
  const Report& last = found->second;
  if (now - last.at > silence_max)
    return fmt::format("spoor-watch last reported at {}: it does not run, or hangs",
                       base::iso_time(last.wall_at));
  return last.drive.is_watched ? std::string() : error_of(last.drive);
}

std::vector<WatchState> WatchedDrives::states() const {
  std::vector<WatchState> states;
  for (const std::filesystem::path& path : watched_) {
    WatchState& state = states.emplace_back();
    state.drive = path.native();
    state.error = why_not_watched(state.drive);
    const auto found = reports_.find(state.drive);
    if (found == reports_.end()) {
      if (state.error.empty()) state.error = "spoor-watch has not reported yet";
      state.failing_since = started_wall_at_;
      continue;
    }
    const Report& last = found->second;
    if (state.error.empty()) state.error = last.drive.error;  // the daemon refuses its marks
    state.failing_since = last.failing_since.value_or(last.wall_at);
    state.reported_at = last.wall_at;
    state.last = last.drive;
  }
  return states;
}

std::vector<std::string> WatchedDrives::health_errors() const {
  std::vector<std::string> errors;
  for (const WatchState& state : states()) {
    if (!state.error.empty())
      errors.push_back(fmt::format("{} is not watched: {}", base::printable(state.drive), state.error));
  }
  return errors;
}

}  // namespace spoor::daemon
