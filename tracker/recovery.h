// Starting a tracker from what the last run left: decides whether its memory is unbroken.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "tracker/instance_record.h"
#include "tracker/journal.h"
#include "tracker/snapshot_store.h"
#include "tracker/tracker.h"

namespace spoor::tracker {

// All that is known of the last run.
struct Remains {
  // Nothing where data_dir holds none; an error where it holds one that can't be read.
  base::Result<std::optional<InstanceRecord>> record = std::optional<InstanceRecord>();
  LoadedSnapshot snapshot;
  LoadedJournal journal;  // of the record's instance
};

// How it is from now on.
struct Circumstances {
  const base::Clock& clock;
  Tracker::Options tracker;
  std::string_view rules;  // NamespaceRules::fingerprint()
  std::string_view boot_id;
};

struct Recovery {
  TrackerState state;
  // Why a new instance with a gap over everything was started; empty where nothing was lost.
  std::string loss;
  std::optional<Birth> birth;   // of the instance, where it is known
  JournalPosition follows = 0;  // up to where its journal goes
  // Bytes of an unfinished write at the end of the journal that nobody relied on, in a sentence; empty
  // where there were none.
  std::string cut_off;
};

// - The record says that the last run ended cleanly with the very snapshot that was loaded: the instance
//   goes on.
// - It did not, but kept what it acknowledged in a journal, which goes from the snapshot (or from the
//   instance's birth) to its end without a hole: the instance goes on with what both hold. Bytes at the
//   end that can't be read are those of a write that was under way, unless they say otherwise.
// - There is neither a record nor a snapshot, nor the remains of one: a birth.
// - Anything else, and other rules on what is ignored, is a loss: what can be read is kept, in a new
//   instance, and a gap at the root covers what can't. The gap lies in a closed cycle, so that a scanner
//   walks it once.
Recovery recover(const Remains& remains, const Circumstances& now);

}  // namespace spoor::tracker
