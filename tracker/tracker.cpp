#include "tracker/tracker.h"

#include <algorithm>
#include <utility>

namespace spoor::tracker {
namespace {

using std::chrono::milliseconds;

// Whether one mark on this path said something new to the filters of `marks`.
bool add_path(MarkSet& marks, const Mark& mark, BloomShape shape) {
  const bool skip_last = mark.kind == MarkKind::file;
  bool is_new = false;
  bool has_parent = false;
  for_each_prefix_hash(mark.path, [&](const PathHash& hash, bool is_last) {
    if (is_last && skip_last) return;
    has_parent = true;
    if (marks.add(hash, shape)) is_new = true;
  });
  // The parent of a file at the top is the root, whose key is the empty path.
  if (!has_parent && marks.add(hash_path(""), shape)) is_new = true;
  return is_new;
}

}  // namespace

Tracker::Tracker(Options options, const base::Clock& clock, TrackerState state)
    : options_(options),
      clock_(clock),
      instance_(state.instance),
      complete_since_birth_(state.complete_since_birth),
      oldest_kept_(state.oldest_kept),
      current_(state.current),
      opened_at_(state.current_opened_at),
      marks_(*state.current_marks),
      history_(std::move(state.history)),
      position_(state.position) {
  // From here on the cycle's age is measured, not computed from the time of day, which may jump.
  // It may be any number, as read from a file: outside of what has been, it says nothing.
  const base::WallTime now = std::max(clock.wall_now(), base::WallTime{});
  opened_at_steady_ = clock.steady_now() - (now - std::clamp(opened_at_, base::WallTime{}, now));
  trim_history();
}

TrackerState Tracker::born(InstanceId instance, const base::Clock& clock) {
  TrackerState state;
  state.instance = instance;
  state.current_opened_at = clock.wall_now();
  return state;
}

MarkOutcome Tracker::mark(std::span<const Mark> marks) {
  MarkOutcome outcome;
  for (const Mark& mark : marks) {
    const std::scoped_lock lock(mutex_);  // for each: a large request must not hold up the others
    if (add(mark)) ++outcome.added;
    ++outcome.marked;
    outcome.cycle = current_;
    outcome.position = position_;
  }
  if (marks.empty()) {
    const std::scoped_lock lock(mutex_);
    outcome.cycle = current_;
  }
  return outcome;
}

bool Tracker::add(const Mark& mark) {
  const bool is_new =
      mark.kind == MarkKind::tree ? marks_.add_tree(mark.path) : add_path(marks_, mark, options_.levels.shape(0));
  if (is_new) record(mark, record_bytes(mark));
  return is_new;
}

template <class Record>
void Tracker::record(const Record& record, std::size_t bytes) {
  position_ += bytes;
  if (!recording_) return;
  if (records_.size() + bytes > recorded_bytes_max) {
    records_ = {};
    recording_ = false;
    recording_cut_off_ = true;
    return;
  }
  append_record(records_, record);
}

bool Tracker::advance(CycleId to) {
  const std::scoped_lock lock(mutex_);
  return advance_locked(to);
}

bool Tracker::advance_locked(CycleId to) {
  if (to <= current_ || to.value > CycleId::request_max || to.value - current_.value > CycleId::jump_max) {
    return false;
  }
  if (!marks_.empty()) {
    history_.push_back({current_, std::make_shared<const MarkSet>(std::exchange(marks_, {}))});
    trim_history();
  }
  current_ = to;
  opened_at_ = clock_.wall_now();
  opened_at_steady_ = clock_.steady_now();
  record(AdvanceRecord{to, opened_at_}, advance_record_bytes);
  last_advance_ = position_;
  return true;
}

void Tracker::trim_history() {
  while (history_.size() > options_.history_max) {
    oldest_kept_ = next(history_.front().id);
    complete_since_birth_ = false;
    history_.erase(history_.begin());
  }
}

milliseconds Tracker::current_age() const {
  return std::chrono::duration_cast<milliseconds>(clock_.steady_now() - opened_at_steady_);
}

CycleAnswer Tracker::cycle(const CycleRequest& request) {
  CycleAnswer answer;
  std::vector<ClosedCycle> closed;
  CycleId oldest = request.oldest;
  {
    const std::scoped_lock lock(mutex_);
    // This memory never gave such a cursor, even if the request now opens a cycle beyond it.
    const bool is_ahead = oldest > current_;
    const bool is_opened = advance_locked(request.current);
    answer.instance = instance_;
    answer.current = current_;
    answer.position = last_advance_;
    answer.current_age = current_age();
    answer.complete_since_birth = complete_since_birth_;
    answer.gap = request.instance != instance_ || oldest < oldest_kept_ || is_ahead;
    if (!request.marks_wanted) return answer;
    if (answer.gap) oldest = oldest_kept_;
    closed = history_;
    if (!is_opened) answer.marks = marks_;  // a cycle just opened is empty
  }
  // Closed cycles never change: merging them needs no lock.
  for (const ClosedCycle& cycle : closed) {
    if (cycle.id >= oldest) answer.marks.merge(*cycle.marks);
  }
  return answer;
}

DirtyAnswer Tracker::dirty(std::string_view path, CycleId since) const {
  const PathHash hash = hash_path(path);
  DirtyAnswer answer;
  std::vector<ClosedCycle> closed;
  {
    const std::scoped_lock lock(mutex_);
    answer.oldest_kept = oldest_kept_;
    if (current_ >= since && marks_.may_contain(path, hash)) {
      answer.latest = current_;
      return answer;
    }
    closed = history_;
  }
  for (auto cycle = closed.rbegin(); cycle != closed.rend() && cycle->id >= since; ++cycle) {
    if (!cycle->marks->may_contain(path, hash)) continue;
    answer.latest = cycle->id;
    break;
  }
  return answer;
}

CycleFigures Tracker::figures_of(CycleId id, const MarkSet& marks) const {
  CycleFigures figures;
  figures.id = id;
  figures.filter = MarkSetFigures::of(marks);
  figures.levels = marks.filters().size();
  figures.tree_marks = marks.tree_marks().size();
  figures.saturated =
      std::any_of(marks.filters().begin(), marks.filters().end(), [&](const BloomFilter& filter) {
        return filter.shape() == options_.levels.shape(0) &&
               FilterFigures::of(filter).items > options_.levels.items_max(0);
      });
  return figures;
}

TrackerStatus Tracker::status() const {
  const TrackerState now = state();
  TrackerStatus status;
  status.instance = now.instance;
  status.current = now.current;
  status.current_opened_at = now.current_opened_at;
  {
    const std::scoped_lock lock(mutex_);
    status.current_age = current_age();
  }
  status.cycles.push_back(figures_of(now.current, *now.current_marks));
  for (auto cycle = now.history.rbegin(); cycle != now.history.rend(); ++cycle) {
    status.cycles.push_back(figures_of(cycle->id, *cycle->marks));
  }
  return status;
}

TrackerState Tracker::state() const {
  TrackerState state;
  const std::scoped_lock lock(mutex_);
  state.instance = instance_;
  state.complete_since_birth = complete_since_birth_;
  state.oldest_kept = oldest_kept_;
  state.current = current_;
  state.current_opened_at = opened_at_;
  state.position = position_;
  state.current_marks = std::make_shared<const MarkSet>(marks_);
  state.history = history_;
  return state;
}

JournalPosition Tracker::position() const {
  const std::scoped_lock lock(mutex_);
  return position_;
}

Tracker::Recorded Tracker::take_records() {
  const std::scoped_lock lock(mutex_);
  Recorded recorded{position_ - records_.size(), {}, recording_cut_off_};
  recorded.records.swap(records_);
  return recorded;
}

JournalPosition Tracker::start_recording() {
  const std::scoped_lock lock(mutex_);
  records_.clear();
  recording_ = true;
  recording_cut_off_ = false;
  return position_;
}

void Tracker::stop_recording() {
  const std::scoped_lock lock(mutex_);
  records_ = {};
  recording_ = false;
  recording_cut_off_ = false;
}

}  // namespace spoor::tracker
