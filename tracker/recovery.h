// Starting a tracker from what the last run left: decides whether its memory is unbroken.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "tracker/instance_record.h"
#include "tracker/snapshot_store.h"
#include "tracker/tracker.h"

namespace spoor::tracker {

struct Recovery {
  TrackerState state;
  // Why a new instance with a gap over everything was started; empty where nothing was lost.
  std::string loss;
};

// `record` is nothing where data_dir holds none, and an error where it holds one that can't be read.
// `rules` is the fingerprint of the rules on what is ignored from now on.
//
// - The record says that the last run ended cleanly with the very snapshot that was loaded, under the
//   same rules: the instance goes on.
// - There is neither a record nor a snapshot, nor the remains of one: a birth.
// - Anything else is a loss: what was saved is kept, in a new instance, and a gap at the root covers
//   what was not. The gap lies in a closed cycle, so that a scanner walks it once.
Recovery recover(const base::Result<std::optional<InstanceRecord>>& record, LoadedSnapshot loaded,
                 const base::Clock& clock, std::string_view rules);

}  // namespace spoor::tracker
