#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "tracker/cycles/history_span.h"
#include "tracker/cycles/ids.h"
#include "tracker/cycles/journal_record.h"
#include "tracker/cycles/striped_shared_lock.h"
#include "tracker/filter/bloom_filter.h"
#include "tracker/filter/level_schedule.h"
#include "tracker/filter/live_marks.h"
#include "tracker/filter/mark_set.h"
#include "tracker/paths/path.h"

namespace spoor::tracker {

class PrefixHashes;

// Cycles that take no more marks: those after the previous span, up to `last`. Their marks are shared, not
// copied.
struct ClosedSpan {
  CycleId last;
  std::shared_ptr<const MarkSet> marks;
};

// The whole state of a tracker: the content of a snapshot.
struct TrackerState {
  InstanceId instance;
  // Whether no mark was lost or dropped since this instance began.
  bool complete_since_birth = true;
  // The marks of all cycles from this one to the current one are known; older ones were dropped, or are older
  // than the instance.
  CycleId oldest_kept{1};
  CycleId current{1};
  base::WallTime current_opened_at{};
  JournalPosition position = 0;  // the state holds all journal records before it
  std::shared_ptr<const MarkSet> current_marks = std::make_shared<MarkSet>();
  std::vector<ClosedSpan> history;  // oldest first; cycles without marks need not be in a span
};

struct MarkOutcome {
  std::uint64_t marked = 0;
  std::uint64_t added = 0;  // of those, the marks that were not known yet
  CycleId cycle;            // the current cycle when the last of them was made
  // The marks are durable once the journal is durable up to here. This includes marks that added nothing to
  // earlier marks of other callers.
  JournalPosition position = 0;
};

// The request of a scan to a tracker (docs/cluster.md).
struct CycleRequest {
  CycleId current;           // the cycle to be in afterwards; 0 only reads
  CycleId oldest;            // the first cycle wanted
  InstanceId instance;       // the instance that issued `oldest`; none for a first request
  bool marks_wanted = true;  // false requests the cycle's number and age only
  // The level at which the next cycle is to start, by the number of items that this scanner merges from the
  // whole cluster; 0: not known.
  std::size_t start_level = 0;
  // Without marks: the records of members since `oldest` nevertheless (tracker/cycles/member_marks.h).
  bool members_wanted = false;
};

struct CycleAnswer {
  InstanceId instance;
  CycleId current;
  std::chrono::milliseconds current_age{};
  bool complete_since_birth = false;
  // The tracker does not know all changes since the requested cycle: `marks` holds everything that is kept,
  // and any other path may have changed too.
  bool gap = false;
  MarkSet marks;
  bool has_advanced = false;  // this request opened the current cycle
  // The cursor is valid after a crash only if the journal is durable up to here: after the advance to the
  // current cycle.
  JournalPosition position = 0;

  // The cursor for the next request.
  Cursor next() const { return {instance, current}; }
};

struct DirtyAnswer {
  std::optional<CycleId> latest;  // the last cycle of the newest span that may contain the path
  CycleId oldest_kept;            // older cycles are not known
};

// Of a span of the history, or of the current cycle.
struct SpanFigures : CycleFigures {
  CycleId first;
  CycleId last;
};

struct TrackerStatus {
  InstanceId instance;
  CycleId current;
  base::WallTime current_opened_at{};
  std::chrono::milliseconds current_age{};
  std::vector<SpanFigures> cycles;  // newest first, the current one included
  std::uint64_t spans_dropped = 0;  // since the start, because of memory_bytes_max
  std::uint64_t memory_bytes = 0;   // of all filters kept
  std::uint64_t memory_bytes_max = 0;
};

// The marks of one node, by cycle. No I/O, no timers.
//
// Thread-safe. Threads that mark rarely contend, and readers (except exact_state()) block them only while
// some pointers are copied. A mark is atomic against an advance: all its prefixes land in one cycle, since a
// scan would not descend a chain that is split over two. Cycle numbers never decrease, and the work of a
// request is bounded by what is kept.
//
// History (docs/filters.md): beyond history_max spans, two neighbours are merged, so that a cursor of any age
// is answered without a gap. Only if the closed filters take half of memory_bytes_max is the oldest dropped.
//
// Filter sizes (docs/filters.md): a cycle begins with a level for what the whole history holds, or the one
// that scans requested, and opens the next level when the newest is full, as long as memory_bytes_max allows
// it; then the cycle is saturated.
class Tracker {
 public:
  struct Options {
    LevelSchedule levels{200'000, 0.1};  // of the filters that new marks go to
    std::size_t history_max = 16;        // spans of closed cycles
    // The memory of all filters that are kept; tree marks have bounds of their own. A filter of level 0 is
    // kept for each span in any case.
    std::uint64_t memory_bytes_max = std::uint64_t{256} << 20U;
    // False for a replay: after the first level, only open_level() opens further ones.
    bool opens_levels = true;
  };

  // `clock` must outlive the tracker.
  Tracker(Options options, const base::Clock& clock, TrackerState state);

  // The state of a new instance: cycle 1, no marks.
  static TrackerState born(InstanceId instance, const base::Clock& clock);

  // Paths must be normalised. A mark of a path does not allocate, except to open a level or for more than 32
  // prefixes; while marks are recorded, the buffer of records grows until it holds those between two calls of
  // take_records().
  MarkOutcome mark(std::span<const Mark> marks);

  // Opens `to` and closes the current cycle, if `to` is ahead of it and at most CycleId::request_max. Returns
  // whether it did. The step is not bounded by jump_max: a replay repeats what the tracker did.
  bool advance(CycleId to);

  // Puts the marks of another tracker into a cycle of their own, after the current one, and opens the next:
  // each scan reads them. `encoded`: the same marks, for the record.
  JournalPosition adopt(std::shared_ptr<const MarkSet> marks, std::string encoded);

  // Whether a request can open this cycle: a cycle beyond reach_of() the current one is refused. Once true,
  // it stays true.
  bool is_in_reach(CycleId to) const;

  // For a replay: opens a filter of this shape for new marks. Returns false if it would exceed
  // memory_bytes_max.
  bool open_level(BloomShape shape);

  // Advances as requested and returns the marks from `oldest` through the last closed cycle; also those of
  // the live cycle if the request did not open it. Does not advance to a `current` out of reach.
  CycleAnswer cycle(const CycleRequest& request);

  DirtyAnswer dirty(std::string_view path, CycleId since) const;
  TrackerStatus status() const;

  // A copy that holds all records before its position, and possibly later marks: marking continues while the
  // current cycle's filters are copied.
  TrackerState state() const;

  // A copy that holds exactly the records before its position. Blocks marking until it is made.
  TrackerState exact_state() const;

  // Increases with every change of the state.
  JournalPosition position() const { return position_.load(std::memory_order_acquire); }

  // --- for the journal ---

  // The records since the last call, and the position of the first one.
  struct Recorded {
    JournalPosition start = 0;
    std::string records;
    bool is_cut_off = false;  // recorded_bytes_max was exceeded: all are dropped, recording has ended
  };
  static constexpr std::size_t recorded_bytes_max = std::size_t{64} << 20U;

  Recorded take_records();

  // Begins to record, and returns the position of the first record; records that were not taken are dropped.
  // A tracker that does not record still counts positions.
  JournalPosition start_recording();
  void stop_recording();

 private:
  // Written by the threads that mark on one stripe of the lock.
  struct Marked {
    std::string records;           // not taken yet
    std::string taken;             // what take_records() took last; its memory is reused
    std::uint64_t bits_added = 0;  // to the newest level, and not counted yet
  };
  using MarkingLock = StripedSharedLock<Marked>;

  void mark_paths(std::span<const Mark> marks, MarkOutcome& outcome);
  bool mark_path(MarkingLock::SharedLock& shared, const Mark& mark, const PrefixHashes& prefixes,
                 MarkOutcome& outcome);
  void mark_tree(const Mark& mark, MarkOutcome& outcome);
  template <class Record>
  Counted record(Marked& marked, const Record& record);
  template <class Record>
  JournalPosition record_locked(MarkingLock::ExclusiveLock& locked, const Record& what);

  bool is_newest_level_open() const;
  void open_next_level();
  std::optional<std::size_t> level_to_open();
  std::uint64_t live_memory_bytes_max() const;
  void count_bits(MarkingLock::ExclusiveLock& locked);

  bool advance_locked(MarkingLock::ExclusiveLock& locked, CycleId to);
  void open_cycle(MarkingLock::ExclusiveLock& locked, CycleId to);
  void pack(CycleId closed);
  void fold_history();
  void drop_oldest(MarkingLock::ExclusiveLock& locked);
  std::vector<HistorySpan> history() const;
  void seal_records(MarkingLock::ExclusiveLock& locked) const;
  void forget_records(MarkingLock::ExclusiveLock& locked);

  std::function<TrackerState()> begin_copy(MarkingLock::ExclusiveLock& locked) const;
  std::chrono::milliseconds current_age() const;
  CycleFigures live_figures(std::uint64_t uncounted) const;

  const Options options_;
  const base::Clock& clock_;

  // A shared holder reads all members below, adds to live_, and writes to its Marked; only an exclusive
  // holder changes the rest.
  mutable MarkingLock marking_lock_;
  InstanceId instance_;
  bool complete_since_birth_;
  CycleId oldest_kept_;
  CycleId current_;
  base::WallTime opened_at_;
  base::SteadyTime opened_at_steady_;
  LiveMarks live_;
  bool saturated_ = false;         // the current cycle can open no further level
  std::size_t start_level_ = 0;    // of the current cycle
  std::size_t asked_level_ = 0;    // the largest requested for the next cycle
  std::size_t history_level_ = 0;  // for what the history holds
  std::vector<HistorySpan> history_;
  std::uint64_t spans_dropped_ = 0;
  JournalPosition last_advance_ = 0;  // the position after its record
  bool recording_ = false;
  mutable std::string sealed_;       // records older than those in Marked
  JournalPosition taken_up_to_ = 0;  // the position of the first record that was not taken

  std::mutex taking_;   // held by take_records(), for Marked::taken
  std::mutex folding_;  // held by fold_history(): spans are merged by one thread

  // Increased before the bits of a mark are set: a thread that sees the bits and then reads the position gets
  // one after the mark's record.
  alignas(64) std::atomic<JournalPosition> position_;
  std::atomic<bool> recording_cut_off_ = false;
};

}  // namespace spoor::tracker
