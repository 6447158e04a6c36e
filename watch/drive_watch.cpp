#include "watch/drive_watch.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/printable.h"

namespace spoor::watch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds check_interval{1};  // of whether the drive is still mounted
constexpr seconds reopen_interval{1};
constexpr seconds gap_interval{60};  // between gaps of a drive that cannot be watched or marked
// Storing a gap costs some syncs of the disk: no more than so many in a row, and then one in this time.
constexpr int gaps_in_a_row_max = 4;
constexpr seconds gap_pace{5};
constexpr milliseconds first_pause{100};
constexpr seconds pause_max{5};
// Read before marks are sent: bounds the memory for events.
constexpr std::size_t batches_max = 256;

}  // namespace

DriveWatch::DriveWatch(Options options, OpenSource open, MarkSink& marks, GapSink& gaps,
                       const base::Clock& clock, std::unique_ptr<EventSource> kept, std::string gap_id)
    : options_(std::move(options)),
      open_source_(std::move(open)),
      marks_(marks),
      gaps_(gaps),
      clock_(clock),
      source_(std::move(kept)),
      pending_(source_ ? source_->own_directories() : std::vector<std::string>()),
      gap_id_(std::move(gap_id)) {}

void DriveWatch::step() {
  if (source_ || open()) read();
  // A source that was lost is opened again at once, which notes a gap, whether or not it succeeds.
  if (!source_ && open()) read();
  store_gap();
  send();
  if (source_ && is_settled()) source_->settle(gap_id_);
}

std::chrono::nanoseconds DriveWatch::due_in() const {
  const base::SteadyTime now = clock_.steady_now();
  base::SteadyTime due = now + check_interval;
  if (!pending_.empty()) due = std::min(due, send_at_);
  return std::max(due - now, std::chrono::nanoseconds(0));
}

tracker::WatchFigures DriveWatch::figures() const {
  tracker::WatchFigures figures = figures_;
  figures.pending_marks = pending_.size();
  if (pending_since_)
    figures.lag_seconds = std::chrono::duration<double>(clock_.steady_now() - *pending_since_).count();
  return figures;
}

// The gap is stored after the drive is watched: what changed in between is part of it.
bool DriveWatch::open() {
  const base::SteadyTime now = clock_.steady_now();
  if (now < open_at_) return false;
  auto opened = open_source_();
  if (!opened) {
    open_at_ = now + reopen_interval;
    if (open_error_ != opened.error().message) spdlog::error("{}", opened.error().message);
    open_error_ = opened.error().message;
    note_lasting_gap(open_error_);
    return false;
  }
  source_ = *std::move(opened);
  pending_ = EventMarks(source_->own_directories());
  pending_since_.reset();
  note_gap(lost_reason_.empty() ? "changes before spoor-watch started were not watched" : lost_reason_);
  open_error_.clear();
  lasting_gap_at_ = {};
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
}

// Returns false if no event waits.
base::Result<bool> DriveWatch::read_batch() {
  const auto events = source_->read();
  if (!events) return events.error();
  if (events->empty()) return false;
  const std::size_t before = pending_.size();
  const auto added = pending_.add(*events, source_->paths());
  if (!added) {
    source_->paths().forget();
    note_gap(added.error().message);
  }
  figures_.events += events->size();
  figures_.coalesced += events->size() - std::min(events->size(), pending_.size() - before);
  if (!pending_.empty() && !pending_since_) pending_since_ = clock_.steady_now();
  if (pending_.bytes() > options_.pending_bytes_max) send();
  if (pending_.bytes() <= options_.pending_bytes_max) return true;
  note_gap("more changed, while the daemon accepted no marks, than fits in memory");
  pending_.clear();
  pending_since_.reset();
  return true;
}

void DriveWatch::send() {
  if (pending_.empty() || clock_.steady_now() < send_at_) return;
  const auto sent = marks_.send(pending_);
  if (!sent) return fail_to_send(sent.error());
  if (!send_error_.empty()) spdlog::info("the daemon accepts marks again");
  figures_.marks += pending_.size();
  pending_.clear();
  pending_since_.reset();
  send_error_.clear();
  pause_ = {};
}

void DriveWatch::fail_to_send(const base::Error& why) {
  if (why.code == std::errc::invalid_argument) {
    note_gap(why.message);
    pending_.clear();
    pending_since_.reset();
    store_gap();
    return;
  }
  // A scan may succeed although the daemon refuses these marks.
  if (why.code == std::errc::permission_denied) note_lasting_gap(why.message);
  if (send_error_.empty())
    spdlog::warn("marks of {} wait: {}", base::printable(options_.drive.native()), why.message);
  send_error_ = why.message;
  pause_ = std::clamp<std::chrono::nanoseconds>(2 * pause_, first_pause, pause_max);
  send_at_ = clock_.steady_now() + pause_;
}

// If it cannot be stored, the next step retries.
void DriveWatch::store_gap() {
  const base::SteadyTime now = clock_.steady_now();
  if (gap_reason_.empty() || gaps_paid_until_ > now + (gaps_in_a_row_max - 1) * gap_pace) return;
  gaps_paid_until_ = std::max(gaps_paid_until_, now) + gap_pace;
  auto stored = gaps_.add_gap(options_.drive, gap_reason_);
  if (!stored) {
    if (gap_error_.empty()) spdlog::error("cannot store a gap: {}", stored.error().message);
    gap_error_ = stored.error().message;
    return;
  }
  spdlog::warn("the next scan walks all of {}: {}", base::printable(options_.drive.native()), gap_reason_);
  gap_error_.clear();
  gap_reason_.clear();
  gap_id_ = *std::move(stored);
  ++figures_.gaps;
}

void DriveWatch::lose(const std::string& why) {
  source_->leave();
  source_->discard();
  source_.reset();
  pending_.clear();
  pending_since_.reset();
  lost_reason_ = why;
  open_at_ = {};
}

void DriveWatch::note_lasting_gap(const std::string& reason) {
  if (clock_.steady_now() < lasting_gap_at_) return;
  lasting_gap_at_ = clock_.steady_now() + gap_interval;
  note_gap(reason);
}

void DriveWatch::note_gap(const std::string& reason) {
  if (gap_reason_.empty()) gap_reason_ = reason;
}

}  // namespace spoor::watch
