#include "tracker/tracker.h"

#include <algorithm>
#include <boost/container/static_vector.hpp>
#include <utility>

#include "tracker/prefix_hashes.h"

namespace spoor::tracker {
namespace {

using std::chrono::milliseconds;

// More of it than a usual path needs is not kept for the next marks.
constexpr std::size_t kept_capacity_max = std::size_t{1} << 20U;

// Made in one stay inside the gate.
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
  // From here on the cycle's age is measured, not computed from the time of day, which may jump.
  // It may be any number, as read from a file: outside of what has been, it says nothing.
  const base::WallTime now = std::max(clock.wall_now(), base::WallTime{});
  opened_at_steady_ = clock.steady_now() - (now - std::clamp(opened_at_, base::WallTime{}, now));
  for (ClosedCycle& cycle : state.history) history_.push_back(make_closed(cycle.id, std::move(cycle.marks)));
  trim_history();
  start_level_ = live_.newest_level().value_or(0);
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
    const auto inside = gate_.enter();
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

// Few at a time: whoever wants to be alone waits for them.
void Tracker::mark_paths(std::span<const Mark> marks, MarkOutcome& outcome) {
  boost::container::static_vector<PrefixHashes, marks_at_a_time> prefixes;
  for (const Mark& mark : marks) {
    prefixes.emplace_back(mark.path);
    if (mark.kind == MarkKind::file) prefixes.back().drop_last();
  }
  for (std::size_t made = 0;; make_room()) {
    auto inside = gate_.enter();
    if (made == 0 && marks.size() > 1) {
      for (const PrefixHashes& each : prefixes) live_.prefetch(each.all().back());
    }
    while (made < marks.size() && mark_path(inside, marks[made], prefixes[made], outcome)) ++made;
    if (made == marks.size()) return;
  }
}

// All of a mark's prefixes are looked up and added in one stay inside the gate, hence in one cycle. False
// where there is no room for it.
bool Tracker::mark_path(Gate::Entry& inside, const Mark& mark, const PrefixHashes& prefixes,
                        MarkOutcome& outcome) {
  const std::span<const PathHash> hashes = prefixes.all();
  const auto unknown = hashes.subspan(live_.knows_first(hashes));
  if (!unknown.empty() && !has_room()) return false;
  outcome.cycle = current_;
  if (unknown.empty()) {
    outcome.position = position();
    return true;
  }
  ++outcome.added;
  outcome.position = record(inside.local(), mark, record_bytes(mark));
  std::uint64_t& bits_added = inside.local().bits_added;
  bits_added += set_bits(unknown);
  // Seldom, since all markers write to the same counter; often enough to notice a full level.
  const auto level = live_.newest_level();
  const std::uint64_t often = level ? options_.levels.bits_set_max(*level) / 1024 : 0;
  if (bits_added > std::min<std::uint64_t>(often, 256)) live_.count_bits(std::exchange(bits_added, 0));
  return true;
}

std::uint64_t Tracker::set_bits(std::span<const PathHash> unknown) {
  if (options_.before_bits) options_.before_bits();
  return live_.add(unknown);
}

// Alone: which tree marks are joined depends on their order.
void Tracker::mark_tree(const Mark& mark, MarkOutcome& outcome) {
  {
    const auto inside = gate_.enter();
    outcome.cycle = current_;
    outcome.position = position();
    if (live_.trees_cover(mark.path)) return;
  }
  auto alone = gate_.enter_alone();
  outcome.cycle = current_;
  outcome.position = position();
  if (!live_.add_tree(mark.path)) return;
  ++outcome.added;
  record_alone(alone, mark, record_bytes(mark));
  outcome.position = bound_trees(alone);
}

// Marks below what others were joined to add nothing, and have no record: it is there again after a replay,
// by any bound, only if it has one.
JournalPosition Tracker::bound_trees(Gate::Solitude& alone) {
  for (std::string& ancestor : live_.bound_trees(options_.tree_bytes_max)) {
    const Mark mark{std::move(ancestor), MarkKind::tree};
    record_alone(alone, mark, record_bytes(mark));
  }
  return position();
}

void Tracker::bound_tree_marks() {
  auto alone = gate_.enter_alone();
  bound_trees(alone);
}

// Must come before the bits of the mark: see position_.
template <class Record>
JournalPosition Tracker::record(Marked& marked, const Record& record, std::size_t bytes) {
  const JournalPosition behind = position_.fetch_add(bytes, std::memory_order_acq_rel) + bytes;
  if (!recording_ || recording_cut_off_) return behind;
  if (behind - taken_up_to_ > recorded_bytes_max) {
    recording_cut_off_ = true;
  } else {
    append_record(marked.records, record);
  }
  return behind;
}

// Behind everything that was recorded before.
template <class Record>
JournalPosition Tracker::record_alone(Gate::Solitude& alone, const Record& what, std::size_t bytes) {
  seal_records(alone);
  Marked marked;
  const JournalPosition behind = record(marked, what, bytes);
  sealed_ += marked.records;
  return behind;
}

// --- levels ---

bool Tracker::has_room() const {
  if (!live_.takes_marks()) return false;
  return saturated_ || !options_.opens_levels ||
         live_.bits_in_newest() < options_.levels.bits_set_max(*live_.newest_level());
}

// Outside the gate: opens the level that is due. A large filter takes a while to get hold of, hence
// beforehand.
void Tracker::make_room() {
  const auto due = [this] {
    auto alone = gate_.enter_alone();
    count_bits(alone);
    return level_to_open();
  }();
  if (!due) return;
  auto filter = std::make_shared<LiveFilter>(options_.levels.shape(*due));
  auto alone = gate_.enter_alone();
  count_bits(alone);
  if (level_to_open() != due) return;
  live_.open(due, std::move(filter));
  record_alone(alone, LevelRecord{options_.levels.shape(*due)}, level_record_bytes);
}

// Nothing where there is room, or where the cycle has to stay as it is.
std::optional<std::size_t> Tracker::level_to_open() {
  const std::uint64_t bytes_max = live_memory_bytes_max();
  const std::uint64_t bytes = live_.memory_bytes();
  const auto fits = [&](std::size_t level) {
    return bytes + options_.levels.shape(level).byte_count() <= bytes_max;
  };
  if (has_room()) return std::nullopt;
  if (!live_.takes_marks()) {
    std::size_t level = std::min(start_level_, options_.levels.last());
    while (level > 0 && !fits(level)) --level;
    // After a change of the configuration and back one of that shape may be there, but not as the newest.
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
  const auto alone = gate_.enter_alone();
  if (live_.has_newest(shape)) return true;
  const std::uint64_t bytes_max = std::max(options_.memory_bytes_max, options_.levels.shape(0).byte_count());
  if (shape.byte_count() > bytes_max || live_.memory_bytes() > bytes_max - shape.byte_count()) return false;
  live_.open(options_.levels.level_of(shape), std::move(filter));
  return true;
}

// One filter of level 0, which always is there to be had, and half of what the closed cycles leave: so a
// burst gets much, and what comes after it something.
std::uint64_t Tracker::live_memory_bytes_max() const {
  const std::uint64_t smallest = options_.levels.shape(0).byte_count();
  std::uint64_t taken = smallest * (options_.history_max + 1);
  for (const Closed& cycle : history_) taken += cycle.memory_bytes - std::min(cycle.memory_bytes, smallest);
  const std::uint64_t left = options_.memory_bytes_max - std::min(options_.memory_bytes_max, taken);
  return smallest + left / 2;
}

void Tracker::count_bits(Gate::Solitude& alone) {
  alone.for_each_local([this](Marked& marked) {
    if (marked.bits_added != 0) live_.count_bits(std::exchange(marked.bits_added, 0));
  });
}

std::size_t Tracker::next_start_level() {
  // A level a cycle, however little is asked for: another scanner's turn to ask may come less often.
  const std::size_t sunk = start_level_ == 0 ? 0 : start_level_ - 1;
  return std::max(std::exchange(asked_level_, 0), sunk);
}

// --- cycles ---

bool Tracker::advance(CycleId to) {
  CycleId before;
  {
    auto alone = gate_.enter_alone();
    before = current_;
    if (!advance_alone(alone, to)) return false;
  }
  pack(before);
  return true;
}

bool Tracker::is_in_reach(CycleId to) const {
  const auto inside = gate_.enter();
  return to <= std::max(current_, reach_of(current_));
}

bool Tracker::advance_alone(Gate::Solitude& alone, CycleId to) {
  if (to <= current_ || to.value > CycleId::request_max) return false;
  count_bits(alone);
  auto view = std::make_shared<const LiveMarks::View>(live_.view());
  if (!view->empty()) {
    Closed closed;
    closed.id = current_;
    closed.memory_bytes = live_.memory_bytes();
    closed.figures = live_figures(0);
    closed.view = std::move(view);
    history_.push_back(std::move(closed));
    trim_history();
  }
  live_.clear();
  saturated_ = false;
  start_level_ = next_start_level();
  current_ = to;
  opened_at_ = clock_.wall_now();
  opened_at_steady_ = clock_.steady_now();
  last_advance_ = record_alone(alone, AdvanceRecord{to, opened_at_}, advance_record_bytes);
  return true;
}

// Outside the gate: a closed cycle never changes.
void Tracker::pack(CycleId closed) {
  const auto its = [&](const Closed& cycle) { return cycle.id == closed && cycle.view != nullptr; };
  std::shared_ptr<const LiveMarks::View> view;
  {
    const auto inside = gate_.enter();
    const auto found = std::find_if(history_.begin(), history_.end(), its);
    if (found != history_.end()) view = found->view;
  }
  if (!view) return;
  MarkSet marks = view->copy().packed();
  marks.bound_trees();
  Closed packed = make_closed(closed, std::make_shared<const MarkSet>(std::move(marks)));
  const auto alone = gate_.enter_alone();
  const auto found = std::find_if(history_.begin(), history_.end(), its);
  if (found != history_.end()) *found = std::move(packed);
}

void Tracker::trim_history() {
  while (history_.size() > options_.history_max) {
    oldest_kept_ = next(history_.front().id);
    complete_since_birth_ = false;
    history_.erase(history_.begin());
  }
}

Tracker::Closed Tracker::make_closed(CycleId id, std::shared_ptr<const MarkSet> marks) const {
  Closed closed;
  closed.id = id;
  closed.figures = figures_of(id, *marks);
  closed.memory_bytes = marks->filter_bytes();
  closed.marks = std::move(marks);
  return closed;
}

std::shared_ptr<const MarkSet> Tracker::Closed::get() const {
  return marks != nullptr ? marks : std::make_shared<const MarkSet>(view->copy());
}

bool Tracker::Closed::may_contain(std::string_view path, const PathHash& hash) const {
  return marks != nullptr ? marks->may_contain(path, hash) : view->may_contain(path, hash);
}

milliseconds Tracker::current_age() const {
  return std::chrono::duration_cast<milliseconds>(clock_.steady_now() - opened_at_steady_);
}

CycleAnswer Tracker::cycle(const CycleRequest& request) {
  CycleAnswer answer;
  std::vector<Closed> closed;
  std::optional<LiveMarks::View> live;
  std::optional<CycleId> just_closed;
  CycleId oldest = request.oldest;
  {
    auto alone = gate_.enter_alone();
    // This memory never gave such a cursor, even if the request now opens a cycle beyond it.
    const bool is_ahead = oldest > current_;
    const CycleId before = current_;
    asked_level_ = std::max(asked_level_, std::min(request.start_level, options_.levels.last()));
    const bool is_in_reach = request.current <= reach_of(current_);
    answer.has_advanced = is_in_reach && advance_alone(alone, request.current);
    if (answer.has_advanced) just_closed = before;
    answer.instance = instance_;
    answer.current = current_;
    answer.position = last_advance_;
    answer.current_age = current_age();
    answer.complete_since_birth = complete_since_birth_;
    answer.gap = request.instance != instance_ || oldest < oldest_kept_ || is_ahead;
    if (answer.gap) oldest = oldest_kept_;
    if (request.marks_wanted) {
      closed = history_;
      if (!answer.has_advanced) live = live_.view();  // a cycle just opened is empty
    }
  }
  // All of it can be read without anybody having to wait.
  if (just_closed) pack(*just_closed);
  if (live) answer.marks = live->copy();
  for (const Closed& cycle : closed) {
    if (cycle.id >= oldest) answer.marks.merge(*cycle.get());
  }
  return answer;
}

DirtyAnswer Tracker::dirty(std::string_view path, CycleId since) const {
  const PathHash hash = hash_path(path);
  DirtyAnswer answer;
  std::vector<Closed> closed;
  {
    const auto inside = gate_.enter();
    answer.oldest_kept = oldest_kept_;
    if (current_ >= since && live_.may_contain(path, hash)) {
      answer.latest = current_;
      return answer;
    }
    closed = history_;
  }
  for (auto cycle = closed.rbegin(); cycle != closed.rend() && cycle->id >= since; ++cycle) {
    if (!cycle->may_contain(path, hash)) continue;
    answer.latest = cycle->id;
    break;
  }
  return answer;
}

// --- what is to be seen of it ---

CycleFigures Tracker::figures_of(CycleId id, const MarkSet& marks) const {
  CycleFigures figures;
  figures.id = id;
  figures.filter = MarkSetFigures::of(marks);
  figures.levels = marks.filters().size();
  figures.tree_marks = marks.tree_marks().size();
  figures.saturated = is_saturated(marks);
  return figures;
}

// Whether its newest level holds clearly more than it is made for: then there was no room for the next one.
bool Tracker::is_saturated(const MarkSet& marks) const {
  const BloomFilter* newest = nullptr;
  std::optional<std::size_t> newest_level;
  for (const BloomFilter& filter : marks.filters()) {
    const auto level = options_.levels.level_of(filter.shape());
    if (!level || level < newest_level) continue;
    newest = &filter;
    newest_level = level;
  }
  if (newest == nullptr) return false;
  constexpr double clearly = 1.05;
  return FilterFigures::of(*newest).items > clearly * options_.levels.items_max(*newest_level);
}

CycleFigures Tracker::live_figures(std::uint64_t uncounted) const {
  CycleFigures figures;
  figures.id = current_;
  figures.filter = live_.figures(uncounted);
  figures.levels = live_.level_count();
  figures.tree_marks = live_.trees().size();
  figures.saturated = saturated_;
  return figures;
}

TrackerStatus Tracker::status() const {
  TrackerStatus status;
  auto alone = gate_.enter_alone();
  status.instance = instance_;
  status.current = current_;
  status.current_opened_at = opened_at_;
  status.current_age = current_age();
  std::uint64_t uncounted = 0;
  alone.for_each_local([&](const Marked& marked) { uncounted += marked.bits_added; });
  status.cycles.push_back(live_figures(uncounted));
  status.memory_bytes = live_.memory_bytes();
  status.memory_bytes_max = options_.memory_bytes_max;
  for (auto cycle = history_.rbegin(); cycle != history_.rend(); ++cycle) {
    status.cycles.push_back(cycle->figures);
    status.memory_bytes += cycle->memory_bytes;
  }
  return status;
}

// The records before the position come before all others in the journal, too: a replay leaves them out.
Tracker::Cut Tracker::cut(Gate::Solitude& alone) const {
  seal_records(alone);
  Cut cut;
  cut.state.instance = instance_;
  cut.state.complete_since_birth = complete_since_birth_;
  cut.state.oldest_kept = oldest_kept_;
  cut.state.current = current_;
  cut.state.current_opened_at = opened_at_;
  cut.state.position = position();
  cut.marks = live_.view();
  cut.history = history_;
  return cut;
}

TrackerState Tracker::copy(const Cut& cut) {
  TrackerState state = cut.state;
  state.current_marks = std::make_shared<const MarkSet>(cut.marks.copy());
  for (const Closed& cycle : cut.history) state.history.push_back({cycle.id, cycle.get()});
  return state;
}

TrackerState Tracker::state() const {
  const Cut made = [this] {
    auto alone = gate_.enter_alone();
    return cut(alone);
  }();
  return copy(made);
}

TrackerState Tracker::exact_state() const {
  auto alone = gate_.enter_alone();
  return copy(cut(alone));
}

// --- for the journal ---

Tracker::Recorded Tracker::take_records() {
  const std::scoped_lock taking(taking_);
  Recorded recorded;
  std::vector<std::string*> pieces;
  {
    auto alone = gate_.enter_alone();
    recorded.is_cut_off = recording_cut_off_;
    if (recorded.is_cut_off) forget_records(alone);
    recorded.start = std::exchange(taken_up_to_, position());
    recorded.records = std::exchange(sealed_, {});
    alone.for_each_local([&](Marked& marked) {
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
  auto alone = gate_.enter_alone();
  forget_records(alone);
  recording_ = true;
  return taken_up_to_;
}

void Tracker::stop_recording() {
  auto alone = gate_.enter_alone();
  forget_records(alone);
}

void Tracker::forget_records(Gate::Solitude& alone) {
  alone.for_each_local([](Marked& marked) { marked.records = {}; });
  sealed_ = {};
  taken_up_to_ = position();
  recording_ = false;
  recording_cut_off_ = false;
}

void Tracker::seal_records(Gate::Solitude& alone) const {
  alone.for_each_local([this](Marked& marked) {
    sealed_ += marked.records;
    marked.records.clear();
  });
}

}  // namespace spoor::tracker
