// What a snapshot and the journal behind it come to.
#pragma once

#include <string>

#include "base/clock.h"
#include "tracker/journal.h"
#include "tracker/tracker.h"

namespace spoor::tracker {

struct Replay {
  TrackerState state;
  JournalPosition end = 0;  // everything before it is in the state, if nothing is missing
  std::string missing;      // what makes it impossible to vouch for the end; empty where nothing does
  std::string cut_off;      // an unfinished write at the end, in a sentence; empty where there was none
};

// The state after all that the journal has behind `base.position`. What is missing does not keep the rest
// from being replayed. `same_boot`: the machine did not go down, so that what was written is all there.
Replay replay_journal(const LoadedJournal& journal, TrackerState base, const Tracker::Options& options,
                      const base::Clock& clock, bool same_boot);

}  // namespace spoor::tracker
