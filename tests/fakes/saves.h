// Saves and stops as the daemon does (daemon/durability/snapshot_scheduler.cpp), but one drive after the
// other.
#pragma once

#include "tracker/storage/persistence.h"

namespace spoor::fakes {

inline tracker::SavedSnapshot save(tracker::Persistence& persistence) {
  const auto snapshot = persistence.begin_save();
  tracker::SavedSnapshot saved = snapshot->on_no_drive();
  for (std::size_t drive = 0; drive < persistence.drives().count(); ++drive)
    saved.drives.push_back(persistence.save_to(drive, *snapshot));
  persistence.finish_save(saved, snapshot->position);
  return saved;
}

// Saves, and records a clean stop if the snapshot is durable.
inline base::Result<tracker::SavedSnapshot> stop(tracker::Persistence& persistence) {
  auto saved = save(persistence);
  if (!saved.durable()) return saved;
  if (auto done = persistence.record_stop(saved); !done) return done.error();
  return saved;
}

}  // namespace spoor::fakes
