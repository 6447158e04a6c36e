#include "tracker/cycles/tracker.h"

#include <algorithm>
#include <boost/container/static_vector.hpp>
#include <utility>

#include "tracker/filter/hash.h"

namespace spoor::tracker {
namespace {

using std::chrono::milliseconds;

// The largest record buffer that a stripe reuses; a larger one is released.
constexpr std::size_t kept_capacity_max = std::size_t{1} << 20U;

// Made under one shared lock.
constexpr std::size_t marks_at_a_time = 8;

}  // namespace

Tracker::Tracker(Options options, const base::Clock& clock, TrackerState state)
    : options_(std::move(options)),
      clock_(clock),
      instance_(state.instance),
      complete_since_birth_(state.complete_since_birth),
      oldest_kept_(state.oldest_kept),
      current_(state.current),
      opened_at_(state.current_opened_at),
      live_(*state.current_marks, options_.levels, !options_.opens_levels),
      taken_up_to_(state.position),
      position_(state.position) {
  // From here on the cycle's age is measured with the steady clock, since the time of day may jump.
  // opened_at_ comes from a file and may have any value: it is clamped to the range from 1970 to now.
  const base::WallTime now = std::max(clock.wall_now(), base::WallTime{});
  opened_at_steady_ = clock.steady_now() - (now - std::clamp(opened_at_, base::WallTime{}, now));
  for (ClosedSpan& span : state.history)
    history_.push_back(HistorySpan::of(span.last, std::move(span.marks), options_.levels));
  start_level_ = live_.newest_level().value_or(0);
  fold_history();
}

TrackerState Tracker::born(InstanceId instance, const base::Clock& clock) {
  TrackerState state;
  state.instance = instance;
  state.current_opened_at = clock.wall_now();
  return state;
}

// --- marking ---

MarkOutcome Tracker::mark(std::span<const Mark> marks) {
  MarkOutcome outcome;
  outcome.marked = marks.size();
  if (marks.empty()) {
    const auto shared = marking_lock_.lock_shared();
    outcome.cycle = current_;
  }
  const auto is_tree = [](const Mark& mark) { return mark.kind == MarkKind::tree; };
  while (!marks.empty()) {
    if (is_tree(marks.front())) {
      mark_tree(marks.front(), outcome);
      marks = marks.subspan(1);
      continue;
    }
    const auto paths = marks.first(std::min(marks.size(), marks_at_a_time));
    const auto count = std::find_if(paths.begin(), paths.end(), is_tree) - paths.begin();
    mark_paths(paths.first(static_cast<std::size_t>(count)), outcome);
    marks = marks.subspan(static_cast<std::size_t>(count));
  }
  return outcome;
}

// Only marks_at_a_time marks, since an exclusive holder waits for them.
void Tracker::mark_paths(std::span<const Mark> marks, MarkOutcome& outcome) {
  boost::container::static_vector<PrefixHashes, marks_at_a_time> prefixes;
  for (const Mark& mark : marks) {
    prefixes.emplace_back(mark.path);
    if (mark.kind == MarkKind::file) prefixes.back().drop_last();
  }
  for (std::size_t made = 0;; open_next_level()) {
    auto shared = marking_lock_.lock_shared();
    if (made == 0 && marks.size() > 1) {
      for (const PrefixHashes& each : prefixes) live_.prefetch(each.all().back());
    }
    while (made < marks.size() && mark_path(shared, marks[made], prefixes[made], outcome)) ++made;
    if (made == marks.size()) return;
  }
}

// All of a mark's prefixes are looked up and added under one shared lock, hence in one cycle. Returns false
// if the next level must be opened first.
bool Tracker::mark_path(MarkingLock::SharedLock& shared, const Mark& mark, const PrefixHashes& prefixes,
                        MarkOutcome& outcome) {
  const std::span<const PathHash> hashes = prefixes.all();
  const auto unknown = hashes.subspan(live_.knows_first(hashes));
  if (!unknown.empty() && !is_newest_level_open()) return false;
  outcome.cycle = current_;
  if (unknown.empty()) {
    outcome.position = position();
    return true;
  }
  ++outcome.added;
  const Counted counted = record(shared.local(), mark);
  outcome.position = counted.position();
  std::uint64_t& bits_added = shared.local().bits_added;
  bits_added += live_.add(unknown, counted);
  // Rarely, since all marking threads share the counter, but often enough to detect a full level in time.
  const auto level = live_.newest_level();
  const std::uint64_t often = level ? options_.levels.bits_set_max(*level) / 1024 : 0;
  if (bits_added > std::min<std::uint64_t>(often, 256)) live_.count_bits(std::exchange(bits_added, 0));
  return true;
}

// Under the exclusive lock, since the order of tree marks decides which are joined.
void Tracker::mark_tree(const Mark& mark, MarkOutcome& outcome) {
  {
    const auto shared = marking_lock_.lock_shared();
    outcome.cycle = current_;
    outcome.position = position();
    if (live_.trees().covers(mark.path)) return;
    // A scan whose cursor is beyond the span has read the record. One that reads member_top there has not: it
    // reads that members are missing, and learns of this one by a new record.
    TreeMarks::Members member;
    if (TreeMarks::is_member(mark.path)) TreeMarks::add_member(mark.path, member);
    const auto holds = [&](const HistorySpan& span) {
      return TreeMarks::holds(span.members(), *member.begin());
    };
    if (!member.empty() && std::ranges::any_of(history_, holds)) return;
  }
  auto locked = marking_lock_.lock_exclusive();
  outcome.cycle = current_;
  outcome.position = position();
  if (!live_.add_tree(mark.path)) return;
  ++outcome.added;
  outcome.position = record_locked(locked, mark);
  // Later marks below an ancestor add nothing and have no record: a replay by a version with other bounds
  // restores them only by the ancestor's record.
  for (std::string& ancestor : live_.bound_trees()) {
    outcome.position = record_locked(locked, Mark{std::move(ancestor), MarkKind::tree});
  }
}

template <class Record>
Counted Tracker::record(Marked& marked, const Record& record) {
  const std::size_t bytes = record_bytes(record);
  const Counted counted(position_.fetch_add(bytes, std::memory_order_acq_rel) + bytes);
  if (!recording_ || recording_cut_off_) return counted;
  if (counted.position() - taken_up_to_ > recorded_bytes_max) {
    recording_cut_off_ = true;
  } else {
    append_record(marked.records, record);
  }
  return counted;
}

// Appends the record after all earlier ones.
template <class Record>
JournalPosition Tracker::record_locked(MarkingLock::ExclusiveLock& locked, const Record& what) {
  seal_records(locked);
  Marked marked;
  const JournalPosition behind = record(marked, what).position();
  sealed_ += marked.records;
  return behind;
}

// --- levels ---

bool Tracker::is_newest_level_open() const {
  if (!live_.takes_marks()) return false;
  return saturated_ || !options_.opens_levels ||
         live_.bits_in_newest() < options_.levels.bits_set_max(*live_.newest_level());
}

// Opens the next level if it is due. Allocates the filter without the lock, since a large one takes long.
void Tracker::open_next_level() {
  const auto due = [this] {
    auto locked = marking_lock_.lock_exclusive();
    count_bits(locked);
    return level_to_open();
  }();
  if (!due) return;
  auto filter = std::make_shared<LiveFilter>(options_.levels.shape(*due));
  auto locked = marking_lock_.lock_exclusive();
  count_bits(locked);
  if (level_to_open() != due) return;
  live_.open(due, std::move(filter));
  record_locked(locked, LevelRecord{options_.levels.shape(*due)});
}

// nullopt if the newest level is not full, or if no further level can be opened: the cycle is then saturated.
std::optional<std::size_t> Tracker::level_to_open() {
  const std::uint64_t bytes_max = live_memory_bytes_max();
  const std::uint64_t bytes = live_.memory_bytes();
  const auto fits = [&](std::size_t level) {
    return bytes + options_.levels.shape(level).byte_count() <= bytes_max;
  };
  if (is_newest_level_open()) return std::nullopt;
  if (!live_.takes_marks()) {
    std::size_t level = std::min(start_level_, options_.levels.last());
    while (level > 0 && !fits(level)) --level;
    // After a change of the configuration and back, a filter of that shape may exist, but not as the newest.
    while (live_.has(options_.levels.shape(level)) && level < options_.levels.last()) ++level;
    return level;
  }
  const std::size_t newest = *live_.newest_level();
  if (newest < options_.levels.last() && fits(newest + 1)) return newest + 1;
  saturated_ = true;
  return std::nullopt;
}

bool Tracker::open_level(BloomShape shape) {
  auto filter = std::make_shared<LiveFilter>(shape);
  const auto locked = marking_lock_.lock_exclusive();
  if (live_.has_newest(shape)) return true;
  const std::uint64_t bytes_max = std::max(options_.memory_bytes_max, options_.levels.shape(0).byte_count());
  if (shape.byte_count() > bytes_max || live_.memory_bytes() > bytes_max - shape.byte_count()) return false;
  live_.open(options_.levels.level_of(shape), std::move(filter));
  return true;
}

// One filter of level 0, which is always available, and half of the memory that the closed cycles leave: a
// burst gets much of it, and later cycles still get a part.
std::uint64_t Tracker::live_memory_bytes_max() const {
  const std::uint64_t smallest = options_.levels.shape(0).byte_count();
  std::uint64_t taken = smallest * (options_.history_max + 1);
  for (const HistorySpan& span : history_) taken += span.memory_bytes - std::min(span.memory_bytes, smallest);
  const std::uint64_t left = options_.memory_bytes_max - std::min(options_.memory_bytes_max, taken);
  return smallest + left / 2;
}

void Tracker::count_bits(MarkingLock::ExclusiveLock& locked) {
  locked.for_each_local([this](Marked& marked) {
    if (marked.bits_added != 0) live_.count_bits(std::exchange(marked.bits_added, 0));
  });
}

// --- cycles ---

bool Tracker::advance(CycleId to) {
  CycleId before;
  {
    auto locked = marking_lock_.lock_exclusive();
    before = current_;
    if (!advance_locked(locked, to)) return false;
  }
  pack(before);
  return true;
}

bool Tracker::is_in_reach(CycleId to) const {
  const auto shared = marking_lock_.lock_shared();
  return to <= std::max(current_, reach_of(current_));
}

bool Tracker::advance_locked(MarkingLock::ExclusiveLock& locked, CycleId to) {
  if (to <= current_ || to.value > CycleId::request_max) return false;
  open_cycle(locked, to);
  last_advance_ = record_locked(locked, AdvanceRecord{to, opened_at_});
  return true;
}

// In one step with one record: a scan, a snapshot or a replay that came between two steps would see a cycle
// in which marks are made, and adopted.
JournalPosition Tracker::adopt(std::shared_ptr<const MarkSet> marks, std::string encoded) {
  HistorySpan adopted = HistorySpan::of({}, std::move(marks), options_.levels);
  CycleId before;
  JournalPosition position = 0;
  {
    auto locked = marking_lock_.lock_exclusive();
    before = current_;
    adopted.last = next(before);
    open_cycle(locked, next(adopted.last));
    history_.push_back(std::move(adopted));
    position = last_advance_ = record_locked(locked, AdoptRecord{opened_at_, std::move(encoded)});
  }
  pack(before);
  return position;
}

// Closes the current cycle.
void Tracker::open_cycle(MarkingLock::ExclusiveLock& locked, CycleId to) {
  count_bits(locked);
  auto view = std::make_shared<const LiveMarks::View>(live_.view());
  if (!view->empty()) {
    history_.push_back({.last = current_,
                        .view = std::move(view),
                        .marks = nullptr,
                        .figures = live_figures(0),
                        .memory_bytes = live_.memory_bytes()});
  }
  live_.clear();
  saturated_ = false;
  // Decreases by at most one level per cycle: a scanner that needs a high level may scan less often than
  // others. What the history holds is what the one that scans least often merges.
  const std::size_t decreased = start_level_ == 0 ? 0 : start_level_ - 1;
  start_level_ = std::max({std::exchange(asked_level_, 0), decreased, history_level_});
  current_ = to;
  opened_at_ = clock_.wall_now();
  opened_at_steady_ = clock_.steady_now();
}

// Packs without the lock: a closed cycle never changes.
void Tracker::pack(CycleId closed) {
  const auto its = [&](const HistorySpan& span) { return span.last == closed && span.view != nullptr; };
  std::shared_ptr<const LiveMarks::View> view;
  {
    const auto shared = marking_lock_.lock_shared();
    const auto found = std::find_if(history_.begin(), history_.end(), its);
    if (found != history_.end()) view = found->view;
  }
  if (view) {
    HistorySpan packed =
        HistorySpan::of(closed, std::make_shared<const MarkSet>(view->copy().packed()), options_.levels);
    const auto locked = marking_lock_.lock_exclusive();
    const auto found = std::find_if(history_.begin(), history_.end(), its);
    if (found != history_.end()) *found = std::move(packed);
  }
  fold_history();
}

std::vector<HistorySpan> Tracker::history() const {
  const auto shared = marking_lock_.lock_shared();
  return history_;
}

// Merges without the lock. Another thread may close a cycle meanwhile, or pack one, which leaves its marks
// the same. If another thread folds, it may leave one span too many until the next cycle is closed.
void Tracker::fold_history() {
  const std::unique_lock folding(folding_, std::try_to_lock);
  if (!folding) return;
  const std::size_t spans_max = std::max<std::size_t>(options_.history_max, 1);
  for (auto spans = history(); spans.size() > spans_max; spans = history()) {
    const std::size_t older = span_to_merge(spans);
    HistorySpan merged = merge_spans(spans[older], spans[older + 1], options_.levels);
    const auto locked = marking_lock_.lock_exclusive();
    const auto place = history_.begin() + static_cast<std::ptrdiff_t>(older);
    *place = std::move(merged);
    history_.erase(place + 1);
  }
  {
    auto locked = marking_lock_.lock_exclusive();
    drop_oldest(locked);
  }
  if (!options_.opens_levels) return;
  const std::size_t level = level_with_room(history(), options_.levels);
  auto locked = marking_lock_.lock_exclusive();
  history_level_ = level;
  if (!live_.takes_marks()) start_level_ = std::max(start_level_, level);
}

// Until the closed filters leave half of the memory to the current cycle, which gets the records of members:
// each scan must learn of them. They need no journal: a replay drops the same span, or keeps it.
void Tracker::drop_oldest(MarkingLock::ExclusiveLock& /*locked*/) {
  const std::uint64_t bytes_max =
      std::max(options_.memory_bytes_max / 2, options_.levels.shape(0).byte_count() * options_.history_max);
  std::uint64_t bytes = 0;
  for (const HistorySpan& span : history_) bytes += span.memory_bytes;
  while (bytes > bytes_max) {
    bytes -= history_.front().memory_bytes;
    for (const auto& member : history_.front().members()) live_.add_tree(TreeMarks::member_path(member));
    oldest_kept_ = next(history_.front().last);
    complete_since_birth_ = false;
    history_.erase(history_.begin());
    ++spans_dropped_;
  }
}

milliseconds Tracker::current_age() const {
  return std::chrono::duration_cast<milliseconds>(clock_.steady_now() - opened_at_steady_);
}

CycleAnswer Tracker::cycle(const CycleRequest& request) {
  CycleAnswer answer;
  std::vector<HistorySpan> closed;
  std::optional<LiveMarks::View> live;
  std::optional<CycleId> just_closed;
  CycleId oldest = request.oldest;
  {
    auto locked = marking_lock_.lock_exclusive();
    // This instance never issued such a cursor, even if the request now opens a cycle beyond it.
    const bool is_ahead = oldest > current_;
    const CycleId before = current_;
    asked_level_ = std::max(asked_level_, std::min(request.start_level, options_.levels.last()));
    const bool is_in_reach = request.current <= reach_of(current_);
    answer.has_advanced = is_in_reach && advance_locked(locked, request.current);
    if (answer.has_advanced) just_closed = before;
    answer.instance = instance_;
    answer.current = current_;
    answer.position = last_advance_;
    answer.current_age = current_age();
    answer.complete_since_birth = complete_since_birth_;
    answer.gap = request.instance != instance_ || oldest < oldest_kept_ || is_ahead;
    if (answer.gap) oldest = oldest_kept_;
    if (request.marks_wanted || request.members_wanted) {
      closed = history_;
      if (!answer.has_advanced) live = live_.view();  // a cycle just opened is empty
    }
  }
  // Without the lock: marking continues.
  if (just_closed) pack(*just_closed);
  std::erase_if(closed, [&](const HistorySpan& span) { return span.last < oldest; });
  if (request.marks_wanted) {
    if (live) answer.marks = live->copy();
    for (const HistorySpan& span : closed) answer.marks.merge(*span.get());
  } else {
    TreeMarks members;
    if (live) members.add_members(live->trees().members());
    for (const HistorySpan& span : closed) members.add_members(span.members());
    answer.marks.set_trees(std::move(members));
  }
  return answer;
}

DirtyAnswer Tracker::dirty(std::string_view path, CycleId since) const {
  const PathHash hash = hash_path(path);
  DirtyAnswer answer;
  std::vector<HistorySpan> closed;
  {
    const auto shared = marking_lock_.lock_shared();
    answer.oldest_kept = oldest_kept_;
    if (current_ >= since && live_.may_contain(path, hash)) {
      answer.latest = current_;
      return answer;
    }
    closed = history_;
  }
  for (auto span = closed.rbegin(); span != closed.rend() && span->last >= since; ++span) {
    if (!span->may_contain(path, hash)) continue;
    answer.latest = span->last;
    break;
  }
  return answer;
}

// --- status ---

CycleFigures Tracker::live_figures(std::uint64_t uncounted) const {
  return {.filter = live_.figures(uncounted),
          .levels = live_.level_count(),
          .tree_marks = live_.trees().size(),
          .saturated = saturated_};
}

TrackerStatus Tracker::status() const {
  TrackerStatus status;
  auto locked = marking_lock_.lock_exclusive();
  status.instance = instance_;
  status.current = current_;
  status.current_opened_at = opened_at_;
  status.current_age = current_age();
  std::uint64_t uncounted = 0;
  locked.for_each_local([&](const Marked& marked) { uncounted += marked.bits_added; });
  status.cycles.push_back({live_figures(uncounted), current_, current_});
  status.memory_bytes = live_.memory_bytes();
  status.memory_bytes_max = options_.memory_bytes_max;
  status.spans_dropped = spans_dropped_;
  for (auto span = history_.rbegin(); span != history_.rend(); ++span) {
    const bool is_oldest = span + 1 == history_.rend();
    const CycleId first = is_oldest ? std::min(oldest_kept_, span->last) : next((span + 1)->last);
    status.cycles.push_back({span->figures, first, span->last});
    status.memory_bytes += span->memory_bytes;
  }
  return status;
}

// Seals the records, so that those before the state's position precede all others in the journal: a replay
// skips them. The result makes the copy, and needs no lock.
std::function<TrackerState()> Tracker::begin_copy(MarkingLock::ExclusiveLock& locked) const {
  seal_records(locked);
  TrackerState state;
  state.instance = instance_;
  state.complete_since_birth = complete_since_birth_;
  state.oldest_kept = oldest_kept_;
  state.current = current_;
  state.current_opened_at = opened_at_;
  state.position = position();
  return [state = std::move(state), marks = live_.view(), history = history_]() mutable {
    state.current_marks = std::make_shared<const MarkSet>(marks.copy());
    for (const HistorySpan& span : history) state.history.push_back({span.last, span.get()});
    return std::move(state);
  };
}

TrackerState Tracker::state() const {
  const auto copy = [this] {
    auto locked = marking_lock_.lock_exclusive();
    return begin_copy(locked);
  }();
  return copy();
}

TrackerState Tracker::exact_state() const {
  auto locked = marking_lock_.lock_exclusive();
  return begin_copy(locked)();
}

// --- for the journal ---

Tracker::Recorded Tracker::take_records() {
  const std::scoped_lock taking(taking_);
  Recorded recorded;
  std::vector<std::string*> pieces;
  {
    auto locked = marking_lock_.lock_exclusive();
    recorded.is_cut_off = recording_cut_off_;
    if (recorded.is_cut_off) forget_records(locked);
    recorded.start = std::exchange(taken_up_to_, position());
    recorded.records = std::exchange(sealed_, {});
    locked.for_each_local([&](Marked& marked) {
      if (marked.records.empty()) return;
      marked.taken.clear();
      marked.records.swap(marked.taken);
      pieces.push_back(&marked.taken);
    });
  }
  for (std::string* piece : pieces) {
    recorded.records += *piece;
    if (piece->capacity() > kept_capacity_max) *piece = {};
  }
  return recorded;
}

JournalPosition Tracker::start_recording() {
  auto locked = marking_lock_.lock_exclusive();
  forget_records(locked);
  recording_ = true;
  return taken_up_to_;
}

void Tracker::stop_recording() {
  auto locked = marking_lock_.lock_exclusive();
  forget_records(locked);
}

void Tracker::forget_records(MarkingLock::ExclusiveLock& locked) {
  locked.for_each_local([](Marked& marked) { marked.records = {}; });
  sealed_ = {};
  taken_up_to_ = position();
  recording_ = false;
  recording_cut_off_ = false;
}

void Tracker::seal_records(MarkingLock::ExclusiveLock& locked) const {
  locked.for_each_local([this](Marked& marked) {
    sealed_ += marked.records;
    marked.records.clear();
  });
}

}  // namespace spoor::tracker
