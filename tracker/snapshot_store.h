#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_system.h"
#include "tracker/snapshot.h"

namespace spoor::tracker {

// `<drive>/.spoor/.tracker.bin`
std::filesystem::path snapshot_file(const std::filesystem::path& drive);

// What one drive came to in a load or a save.
struct DriveState {
  std::filesystem::path drive;
  bool ok = false;
  std::string error;  // what was wrong, where not ok
};

struct LoadedSnapshot {
  std::optional<Snapshot> newest;
  // Some drive held a snapshot of this node that could not be used: what it said is not known.
  bool any_lost = false;
  std::vector<DriveState> drives;
};

struct SavedSnapshot {
  std::uint64_t generation = 0;
  std::uint64_t bytes = 0;
  base::WallTime saved_at{};
  std::vector<DriveState> drives;

  // A save counts when it is durable on at least one drive.
  bool durable() const;
};

// The snapshots of one node, the same on every drive.
//
// Not thread-safe: it belongs to whoever saves.
class SnapshotStore {
 public:
  // `files` must outlive the store.
  SnapshotStore(base::FileSystem& files, std::vector<std::filesystem::path> drives, NodeIdentity owner);

  // The newest whole snapshot of this node among the drives, by generation, whatever their order.
  // A file that is none is reported and put aside, never deleted: `.tracker.bin.corrupt`,
  // `.tracker.bin.foreign` (of another node), `.tracker.bin.v9` (of an unknown version). A file of
  // MinIO's counts as older than any of ours.
  LoadedSnapshot load();

  // Saves to every drive, whole or not at all on each. A drive that is not there is not created.
  SavedSnapshot save(const TrackerState& state, base::WallTime now);

 private:
  base::Result<std::optional<Snapshot>> load_from(const std::filesystem::path& drive) const;
  base::Result<> save_to(const std::filesystem::path& drive, const std::string& bytes) const;
  std::string put_aside(const std::filesystem::path& drive, const std::string& suffix) const;

  base::FileSystem& files_;
  std::vector<std::filesystem::path> drives_;
  NodeIdentity owner_;
  std::uint64_t generation_ = 0;
};

}  // namespace spoor::tracker
