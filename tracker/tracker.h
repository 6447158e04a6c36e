#pragma once

#include <chrono>
#include <cstdint>
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
#include "tracker/mark_set.h"
#include "tracker/path.h"

namespace spoor::tracker {

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
};

// The marks of one node, by cycle. No I/O, no timers.
//
// Thread-safe. One mark is atomic against an advance: all its prefixes land in one cycle, since a
// chain split over two would never be descended. Cycle numbers never go back, and no request makes
// work beyond what is kept.
class Tracker {
 public:
  struct Options {
    LevelSchedule levels{200'000, 0.1};  // of the filters that new marks go to
    std::size_t history_max = 16;        // closed cycles with marks to keep
    std::uint64_t memory_bytes_max = std::uint64_t{256} << 20U;  // of all filters kept
  };

  // `clock` must outlive the tracker.
  Tracker(Options options, const base::Clock& clock, TrackerState state);

  // The state of a tracker that never was before: cycle 1, nothing marked.
  static TrackerState born(InstanceId instance, const base::Clock& clock);

  // Paths must be normalised.
  MarkOutcome mark(std::span<const Mark> marks);

  // Opens `to` if it is ahead of the current cycle, by what can be, and closes that one. Returns
  // whether it did.
  bool advance(CycleId to);

  // Advances as asked and answers with the marks from `oldest` through the last closed cycle, and
  // through the live one where `current` was already current or passed.
  CycleAnswer cycle(const CycleRequest& request);

  DirtyAnswer dirty(std::string_view path, CycleId since) const;
  TrackerStatus status() const;

  // A consistent copy; costs a copy of the current cycle's filter, whatever the history holds.
  TrackerState state() const;

  // Grows with everything that makes state() differ: equal positions, equal states.
  JournalPosition position() const;

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
  bool add(const Mark& mark);
  bool advance_locked(CycleId to);
  template <class Record>
  void record(const Record& record, std::size_t bytes);
  void trim_history();
  std::chrono::milliseconds current_age() const;
  CycleFigures figures_of(CycleId id, const MarkSet& marks) const;

  const Options options_;
  const base::Clock& clock_;

  mutable std::mutex mutex_;  // guards all below
  InstanceId instance_;
  bool complete_since_birth_;
  CycleId oldest_kept_;
  CycleId current_;
  base::WallTime opened_at_;
  base::SteadyTime opened_at_steady_;
  MarkSet marks_;
  std::vector<ClosedCycle> history_;
  JournalPosition position_;
  JournalPosition last_advance_ = 0;  // the position behind its record
  bool recording_ = false;
  bool recording_cut_off_ = false;
  std::string records_;  // those before position_ that nobody has taken
};

}  // namespace spoor::tracker
