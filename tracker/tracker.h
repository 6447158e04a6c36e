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
#include "tracker/bloom_filter.h"
#include "tracker/cursor.h"
#include "tracker/ids.h"
#include "tracker/journal_record.h"
#include "tracker/level_schedule.h"
#include "tracker/live_marks.h"
#include "tracker/mark_gate.h"
#include "tracker/mark_set.h"
#include "tracker/path.h"

namespace spoor::tracker {

class PrefixHashes;

// A cycle that takes no more marks. Its marks never change, so they are shared, not copied.
struct ClosedCycle {
  CycleId id;
  std::shared_ptr<const MarkSet> marks;
};

// Everything a tracker knows: what a snapshot holds.
struct TrackerState {
  InstanceId instance;
  // Whether nothing was lost or trimmed since this instance's birth.
  bool complete_since_birth = true;
  // Cycles from here to the current one are all answered for; older ones were trimmed, or lie
  // before the instance.
  CycleId oldest_kept{1};
  CycleId current{1};
  base::WallTime current_opened_at{};
  JournalPosition position = 0;  // holds everything that the journal has before it
  std::shared_ptr<const MarkSet> current_marks = std::make_shared<MarkSet>();
  std::vector<ClosedCycle> history;  // oldest first; a cycle without marks need not be there
};

struct MarkOutcome {
  std::uint64_t marked = 0;
  std::uint64_t added = 0;  // of those, how many said something that was not known yet
  CycleId cycle;            // the current cycle when the last of them was made
  // What the marks rely on: once the journal is durable up to here, so are they, also those that added
  // nothing to what others had marked just before.
  JournalPosition position = 0;
};

// What a scan asks of a tracker (design: "Cycles in a cluster").
struct CycleRequest {
  CycleId current;           // the cycle to be in afterwards; 0 only reads
  CycleId oldest;            // the first cycle wanted
  InstanceId instance;       // the instance for which `oldest` was given; none for a first request
  bool marks_wanted = true;  // false asks for the cycle's number and age only
  // The level that the next cycle opened is to start at, by what this scanner merges from the whole
  // cluster; 0 is no opinion.
  std::size_t start_level = 0;
};

struct CycleAnswer {
  InstanceId instance;
  CycleId current;
  std::chrono::milliseconds current_age{};
  bool complete_since_birth = false;
  // What was asked for can't be answered: the marks hold everything that is kept, and anything else
  // may have changed too.
  bool gap = false;
  MarkSet marks;
  bool has_advanced = false;  // this request opened the current cycle
  // What the cursor relies on: that this tracker got as far as its current cycle.
  JournalPosition position = 0;

  // From where to read on next time.
  Cursor next() const { return {instance, current}; }
};

struct DirtyAnswer {
  std::optional<CycleId> latest;  // the newest kept cycle that may contain the path
  CycleId oldest_kept;            // nothing is known of cycles before it
};

struct CycleFigures {
  CycleId id;
  MarkSetFigures filter;
  std::size_t levels = 0;
  std::size_t tree_marks = 0;
  bool saturated = false;  // holds more than its filters were made for
};

struct TrackerStatus {
  InstanceId instance;
  CycleId current;
  base::WallTime current_opened_at{};
  std::chrono::milliseconds current_age{};
  std::vector<CycleFigures> cycles;  // newest first, the current one included
  std::uint64_t memory_bytes = 0;    // of all filters kept
  std::uint64_t memory_bytes_max = 0;
};

// The marks of one node, by cycle. No I/O, no timers.
//
// Thread-safe; threads that mark hardly meet, and nothing that reads holds them up for longer than it takes
// to copy some pointers. One mark is atomic against an advance: all its prefixes land in one cycle, since a
// chain split over two would never be descended. Cycle numbers never go back, and no request makes work
// beyond what is kept.
//
// How large the filters get (docs/filters.md): a cycle begins with the level that scans asked for, and opens
// the next one whenever the newest is full, as far as memory_bytes_max allows; there it is saturated.
class Tracker {
 public:
  struct Options {
    LevelSchedule levels{200'000, 0.1};  // of the filters that new marks go to
    std::size_t history_max = 16;        // closed cycles with marks to keep
    // Of all filters kept; tree marks have bounds of their own. Filters of level 0 are kept for each cycle in
    // any case.
    std::uint64_t memory_bytes_max = std::uint64_t{256} << 20U;
    // Else only open_level() opens any, but for a first one: for a replay.
    bool opens_levels = true;
    // Of the paths of the current cycle's tree marks, before they are joined. A replay has no such bound: the
    // journal has what they were joined to.
    std::size_t tree_bytes_max = TreeMarks::bytes_max;
    // For tests: called within a mark, just before its bits are set. Empty in the product.
    std::function<void()> before_bits = {};
  };

  // `clock` must outlive the tracker.
  Tracker(Options options, const base::Clock& clock, TrackerState state);

  // The state of a tracker that never was before: cycle 1, nothing marked.
  static TrackerState born(InstanceId instance, const base::Clock& clock);

  // Paths must be normalised.
  MarkOutcome mark(std::span<const Mark> marks);

  // Opens `to` if it is ahead of the current cycle and at most CycleId::request_max, and closes that one.
  // Returns whether it did. No jump is too far: a replay repeats what the tracker did.
  bool advance(CycleId to);

  // Whether a request may ask for this cycle: one beyond reach_of() the current one is refused. Once true,
  // it stays so.
  bool is_in_reach(CycleId to) const;

  // Joins the current cycle's tree marks where an older version left more than their bound, and records them.
  void bound_tree_marks();

  // For a replay: makes a filter of this shape the one that new marks go to. Returns false where it would
  // take more memory than there may be.
  bool open_level(BloomShape shape);

  // Advances as asked and answers with the marks from `oldest` through the last closed cycle, and
  // through the live one where `current` was already current or passed. A `current` out of reach opens
  // nothing.
  CycleAnswer cycle(const CycleRequest& request);

  DirtyAnswer dirty(std::string_view path, CycleId since) const;
  TrackerStatus status() const;

  // A copy that holds everything before its position, and may hold more of what is marked meanwhile: marking
  // goes on while the current cycle's filters are copied.
  TrackerState state() const;

  // A copy that holds nothing but what is before its position. Marking waits until it is made.
  TrackerState exact_state() const;

  // Grows with everything that makes the state differ.
  JournalPosition position() const { return position_.load(std::memory_order_acquire); }

  // --- for the journal ---

  // What was recorded since the last time, and the position of the first of it.
  struct Recorded {
    JournalPosition start = 0;
    std::string records;
    bool is_cut_off = false;  // more came than is kept for whoever does not take it; recording has ended
  };
  static constexpr std::size_t recorded_bytes_max = std::size_t{64} << 20U;

  Recorded take_records();

  // Begins to record from here on, and gives that position; what was recorded and not taken is
  // forgotten. A tracker that does not record counts positions all the same.
  JournalPosition start_recording();
  void stop_recording();

 private:
  // What the markers of one processor leave behind.
  struct Marked {
    std::string records;           // that nobody has taken
    std::string taken;             // what take_records() took last; its memory is used again
    std::uint64_t bits_added = 0;  // to the newest level, and not counted yet
  };
  using Gate = MarkGate<Marked>;

  // A cycle of the history. When it has just been closed, it is as the marks left it: `view`.
  struct Closed {
    CycleId id;
    std::shared_ptr<const LiveMarks::View> view;  // none once it is packed
    std::shared_ptr<const MarkSet> marks;         // none before
    CycleFigures figures;                         // of the marks
    std::uint64_t memory_bytes = 0;               // of its filters

    std::shared_ptr<const MarkSet> get() const;
    bool may_contain(std::string_view path, const PathHash& hash) const;
  };

  // What a copy of the state is made from, once marking goes on.
  struct Cut {
    TrackerState state;  // without marks and history
    LiveMarks::View marks;
    std::vector<Closed> history;
  };

  void mark_paths(std::span<const Mark> marks, MarkOutcome& outcome);
  bool mark_path(Gate::Entry& inside, const Mark& mark, const PrefixHashes& prefixes, MarkOutcome& outcome);
  std::uint64_t set_bits(std::span<const PathHash> unknown);
  void mark_tree(const Mark& mark, MarkOutcome& outcome);
  JournalPosition bound_trees(Gate::Solitude& alone);
  template <class Record>
  JournalPosition record(Marked& marked, const Record& record, std::size_t bytes);
  template <class Record>
  JournalPosition record_alone(Gate::Solitude& alone, const Record& what, std::size_t bytes);

  bool has_room() const;
  void make_room();
  std::optional<std::size_t> level_to_open();
  std::uint64_t live_memory_bytes_max() const;
  void count_bits(Gate::Solitude& alone);

  bool advance_alone(Gate::Solitude& alone, CycleId to);
  void pack(CycleId closed);
  std::size_t next_start_level();
  void trim_history();
  Closed make_closed(CycleId id, std::shared_ptr<const MarkSet> marks) const;
  void seal_records(Gate::Solitude& alone) const;
  void forget_records(Gate::Solitude& alone);

  Cut cut(Gate::Solitude& alone) const;
  static TrackerState copy(const Cut& cut);
  std::chrono::milliseconds current_age() const;
  CycleFigures figures_of(CycleId id, const MarkSet& marks) const;
  CycleFigures live_figures(std::uint64_t uncounted) const;
  bool is_saturated(const MarkSet& marks) const;

  const Options options_;
  const base::Clock& clock_;

  // Whoever is inside may read all below, add to live_, and leave its records; all else is for who is alone.
  mutable Gate gate_;
  InstanceId instance_;
  bool complete_since_birth_;
  CycleId oldest_kept_;
  CycleId current_;
  base::WallTime opened_at_;
  base::SteadyTime opened_at_steady_;
  LiveMarks live_;
  bool saturated_ = false;       // the current cycle has to stay at its newest level
  std::size_t start_level_ = 0;  // of the current cycle
  std::size_t asked_level_ = 0;  // the largest for the next one
  std::vector<Closed> history_;
  JournalPosition last_advance_ = 0;  // the position behind its record
  bool recording_ = false;
  mutable std::string sealed_;       // records older than those of the markers
  JournalPosition taken_up_to_ = 0;  // the position of the first record that nobody has taken

  std::mutex taking_;  // held by take_records(), for Marked::taken

  // Raised before the bits of a mark are set: who sees them, and reads the position then, sees one behind
  // the mark's record.
  alignas(64) std::atomic<JournalPosition> position_;
  std::atomic<bool> recording_cut_off_ = false;
};

}  // namespace spoor::tracker
