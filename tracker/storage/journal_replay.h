// Applies the journal to the state of a snapshot.
#pragma once

#include <string>

#include "base/clock.h"
#include "tracker/cycles/tracker.h"
#include "tracker/storage/journal.h"

namespace spoor::tracker {

struct Replay {
  TrackerState state;
  JournalPosition end = 0;  // the state holds all records before it, if `missing` is empty
  std::string missing;      // why records may be missing; empty if none are
  std::string cut_off;      // describes an unfinished write at the end; empty if there was none
};

// Applies all records of the journal after `base.position`. If some are missing, the others are applied all
// the same. `same_boot`: the machine did not restart, so that everything that was written is there.
Replay replay_journal(const LoadedJournal& journal, TrackerState base, const Tracker::Options& options,
                      const base::Clock& clock, bool same_boot);

}  // namespace spoor::tracker
