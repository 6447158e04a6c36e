#include "watch/drive_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/printable.h"
#include "tracker/cycles/ids.h"

namespace spoor::watch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds check_interval{1};  // of whether the drive is still mounted
constexpr seconds reopen_interval{1};
constexpr seconds report_interval{3};
constexpr milliseconds first_pause{100};
constexpr seconds pause_max{5};
// Read before marks are sent: bounds the memory for events.
constexpr std::size_t batches_max = 256;

}  // namespace

DriveWatch::DriveWatch(Options options, OpenSource open, MarkSink& sink, const base::Clock& clock,
                       std::unique_ptr<EventSource> kept)
    : options_(std::move(options)),
      open_source_(std::move(open)),
      sink_(sink),
      clock_(clock),
      source_(std::move(kept)),
      pending_(source_ ? source_->own_directories() : std::vector<std::string>()) {
  if (!source_) return;
  gap_ = source_->settled();
  is_gap_known_ = true;
}

void DriveWatch::step() {
  is_busy_ = false;
  if (source_ || open()) read();
  // A source that was lost is opened again at once.
  if (!source_ && open()) read();
  send();
  if (source_ && is_settled()) source_->settle(gap_);
  report();
}

std::chrono::nanoseconds DriveWatch::due_in() const {
  const base::SteadyTime now = clock_.steady_now();
  base::SteadyTime due = now + check_interval;
  if (!pending_.empty()) due = std::min(due, send_at_);
  if (!cookie_.empty() && is_settled()) due = std::min(due, report_at_);
  return std::max(due - now, std::chrono::nanoseconds(0));
}

peer::WatchedDrive DriveWatch::state() const {
  peer::WatchedDrive state{.drive = options_.drive.native(),
                           .is_watched = source_ != nullptr,
                           .error = open_error_.empty() ? send_error_ : open_error_,
                           .gap = gap_,
                           .figures = figures_};
  if (is_settled()) state.cookie = cookie_;
  state.figures.pending_marks = pending_.size();
  if (pending_since_)
    state.figures.lag_seconds = std::chrono::duration<double>(clock_.steady_now() - *pending_since_).count();
  return state;
}

// What changed before the drive is watched is part of the gap.
bool DriveWatch::open() {
  const base::SteadyTime now = clock_.steady_now();
  if (now < open_at_) return false;
  auto opened = open_source_();
  if (!opened) {
    open_at_ = now + reopen_interval;
    if (open_error_ != opened.error().message) spdlog::error("{}", opened.error().message);
    open_error_ = opened.error().message;
    return false;
  }
  source_ = *std::move(opened);
  pending_ = EventMarks(source_->own_directories());
  note_gap(lost_reason_);
  open_error_.clear();
  return true;
}

void DriveWatch::read() {
  if (auto entered = source_->enter(); !entered) return lose(entered.error().message);
  const std::uint64_t queue_bytes = source_->queue_bytes();
  figures_.queue_bytes_max = std::max(figures_.queue_bytes_max, queue_bytes);
  if (queue_bytes > options_.queue_bytes_max)
    return lose("more events waited than fit in the memory for them");
  for (std::size_t batch = 0; batch < batches_max; ++batch) {
    const auto more = read_batch();
    if (!more) return lose(more.error().message);
    if (!*more) break;
  }
  source_->leave();
  std::string cookie = pending_.take_cookie();
  if (cookie.empty()) return;
  cookie_ = std::move(cookie);
  // A scan waits.
  send_at_ = {};
  has_failed_to_report_ = false;
}

// Returns false if no event waits.
base::Result<bool> DriveWatch::read_batch() {
  const auto events = source_->read();
  if (!events) return events.error();
  if (events->empty()) return false;
  const std::size_t before = pending_.size();
  const std::size_t spoor_events_before = pending_.spoor_events();
  const auto added = pending_.add(*events, *source_);
  if (!added) {
    source_->forget();
    note_gap(added.error().message);
  }
  is_busy_ = is_busy_ || events->size() > pending_.spoor_events() - spoor_events_before;
  figures_.events += events->size();
  figures_.coalesced += events->size() - std::min(events->size(), pending_.size() - before);
  if (!pending_.empty() && !pending_since_) {
    pending_since_ = clock_.steady_now();
    send_at_ = *pending_since_ + options_.batch;
  }
  if (pending_.bytes() > options_.pending_bytes_max) {
    if (send_error_.empty()) send_at_ = {};
    send();
  }
  if (pending_.bytes() <= options_.pending_bytes_max) return true;
  note_gap("more changed, while the daemon accepted no marks, than fits in memory");
  drop_pending();
  return true;
}

void DriveWatch::send() {
  if (pending_.empty() || clock_.steady_now() < send_at_) return;
  const auto sent = sink_.send(options_.drive, pending_);
  if (!sent) return fail_to_send(sent.error());
  if (!send_error_.empty()) spdlog::info("the daemon accepts marks again");
  figures_.marks += pending_.size();
  drop_pending();
  send_error_.clear();
  pause_ = {};
}

void DriveWatch::fail_to_send(const base::Error& why) {
  if (why.code == std::errc::invalid_argument) {
    note_gap(why.message);
    drop_pending();
    return;
  }
  if (send_error_.empty())
    spdlog::warn("marks of {} wait: {}", base::printable(options_.drive.native()), why.message);
  send_error_ = why.message;
  pause_ = std::clamp<std::chrono::nanoseconds>(2 * pause_, first_pause, pause_max);
  send_at_ = clock_.steady_now() + pause_;
}

void DriveWatch::drop_pending() {
  pending_.clear();
  pending_since_.reset();
}

// At once if a scan waits for it, or if the daemon is to know something new; else at intervals, so that the
// daemon knows that the drive is still watched.
void DriveWatch::report() {
  const base::SteadyTime now = clock_.steady_now();
  const peer::WatchedDrive state = this->state();
  const bool is_news = !state.cookie.empty() || state.is_watched != reported_.is_watched ||
                       state.error != reported_.error || state.gap != reported_.gap;
  if (now < report_at_ && (!is_news || has_failed_to_report_)) return;
  if (!state.cookie.empty()) is_gap_known_ = true;  // also if the response is lost
  const auto sent = sink_.report(state);
  if (!sent && !has_failed_to_report_)
    spdlog::warn("spoord does not accept the report of {}, and scans consider it not watched: {}",
                 base::printable(state.drive), sent.error().message);
  has_failed_to_report_ = !sent;
  report_at_ = now + (has_failed_to_report_ ? check_interval : report_interval);
  if (has_failed_to_report_) return;
  if (!state.cookie.empty()) cookie_.clear();
  reported_ = state;
}

void DriveWatch::lose(const std::string& why) {
  source_->leave();
  source_->discard();
  source_.reset();
  drop_pending();
  cookie_.clear();
  lost_reason_ = why;
  open_error_ = why;
  open_at_ = {};
}

// A gap that no scan can know covers what is missed until one does.
void DriveWatch::note_gap(const std::string& reason) {
  if (!gap_.id.empty() && !is_gap_known_) return;
  gap_ = {tracker::InstanceId::random().to_string(), reason, clock_.wall_now()};
  is_gap_known_ = false;
  ++figures_.gaps;
  spdlog::warn("the next scan walks all of {}: {}", base::printable(options_.drive.native()), reason);
}

}  // namespace spoor::watch
