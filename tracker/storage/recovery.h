// Recovers a tracker's state from the files of the last run, and decides whether marks were lost.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "tracker/cycles/tracker.h"
#include "tracker/storage/instance_record.h"
#include "tracker/storage/journal.h"
#include "tracker/storage/snapshot_store.h"

namespace spoor::tracker {

struct Replay {
  TrackerState state;   // if `missing` is empty, with all records before its position
  std::string missing;  // why records may be missing; empty if none are
  std::string cut_off;  // describes an unfinished write at the end; empty if there was none
};

// Applies all records of the journal after `base.position`. If some are missing, the others are applied all
// the same. `same_boot`: the machine did not restart, so that everything that was written is there.
Replay replay_journal(const LoadedJournal& journal, TrackerState base, const Tracker::Options& options,
                      const base::Clock& clock, bool same_boot);

// The files of the last run.
struct RecoveryInput {
  // nullopt if data_dir holds none; an error if it can't be read.
  base::Result<std::optional<InstanceRecord>> record = std::optional<InstanceRecord>();
  LoadedSnapshot snapshot;
  LoadedJournal journal;  // of the record's instance
};

// The settings of the run that starts.
struct RecoveryContext {
  const base::Clock& clock;
  Tracker::Options tracker;
  std::string_view rules;  // NamespaceRules::fingerprint()
  std::string_view boot_id;
};

struct Recovery {
  TrackerState state;
  // Why a new instance with a gap over everything was started; empty if no mark was lost.
  std::string loss;
  std::optional<Birth> birth;   // of the instance, if known
  JournalPosition follows = 0;  // for the header of its next journal segment
  // Describes an unfinished, unacknowledged write at the end of the journal; empty if there was none.
  std::string cut_off;
};

// - The record shows a clean stop with exactly the snapshot that was loaded: the instance continues.
// - The last run did not stop cleanly, but its durability covers how it ended, and its journal is complete
//   from the snapshot (or from the instance's birth) to the end: the instance continues with both. Unreadable
//   bytes at the end are taken for an unfinished write, unless they prove otherwise (SegmentEnd).
// - There is neither a record nor a snapshot, nor an unreadable one: a birth.
// - Anything else, and other rules on ignored paths, is a loss: a new instance keeps what can be read, and a
//   gap at the root covers the rest. The gap is in a closed cycle, so that a scanner walks it once.
Recovery recover(const RecoveryInput& input, const RecoveryContext& now);

}  // namespace spoor::tracker
