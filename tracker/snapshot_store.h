#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_system.h"
#include "tracker/drive_registry.h"
#include "tracker/snapshot.h"

namespace spoor::tracker {

// `<drive>/.spoor/.tracker.bin`
std::filesystem::path snapshot_file(const std::filesystem::path& drive);

// What one drive came to in a load or a save.
struct DriveState {
  std::filesystem::path drive;
  bool ok = false;
  std::string error;        // what was wrong, where not ok
  std::string id = {};      // the identity remembered for it; empty where there is none yet
  bool is_refused = false;  // not ok, because it is not the drive it should be
};

struct LoadedSnapshot {
  std::optional<Snapshot> newest;
  // Some drive held a snapshot of this node that could not be used: what it said is not known.
  bool any_lost = false;
  std::vector<DriveState> drives;
  std::string registry_error;  // why it is not known which drives belong here; empty where it is
};

struct SavedSnapshot {
  std::uint64_t generation = 0;
  std::uint64_t bytes = 0;
  base::WallTime saved_at{};
  std::vector<DriveState> drives;
  std::vector<std::string> put_aside;  // the files renamed, in sentences

  // A save counts when it is durable on at least one drive.
  bool durable() const;
};

// The snapshots of one node, the same on every drive that is the one it should be.
//
// Not thread-safe: it belongs to whoever saves.
class SnapshotStore {
 public:
  // `files` must outlive the store. `find_overlap` as in DriveRegistry.
  SnapshotStore(base::FileSystem& files, std::vector<std::filesystem::path> drives, NodeIdentity owner,
                const std::filesystem::path& data_dir, FindOverlap find_overlap = {});

  // The newest whole snapshot of this node among the drives, by generation, whatever their order; one of
  // the `living` instance before any other. A file that is none is reported; a file of MinIO's counts as
  // older than any of ours. Drives that are not the known ones are not read. Changes nothing on disk.
  LoadedSnapshot load(const std::optional<InstanceId>& living = std::nullopt);

  // Saves to every drive, whole or not at all on each. A drive that is not there is not created, one
  // that is not the known one is not touched, and one never seen before is taken in. A file that is no
  // snapshot of this node is renamed before it would be replaced: to `.tracker.bin.corrupt`, `.foreign`
  // (of another node) or `.v9` (of an unknown version).
  SavedSnapshot save(const TrackerState& state, base::WallTime now);

  // Takes the drive at this path, one of the store's, for the one to be known from now on.
  base::Result<> accept(const std::filesystem::path& given);

 private:
  DriveState load_from(const std::filesystem::path& drive, const std::optional<InstanceId>& living,
                       LoadedSnapshot& loaded);
  base::Result<> sync_what_was_read(const std::filesystem::path& drive);
  base::Result<std::optional<Snapshot>> read_from(const std::filesystem::path& drive);
  base::Result<> save_to(const std::filesystem::path& drive, SavedSnapshot& saved, const std::string& bytes);
  base::Result<> take_in(const std::filesystem::path& drive);
  base::Result<> make_way(const std::filesystem::path& drive, SavedSnapshot& saved);

  base::FileSystem& files_;
  std::vector<std::filesystem::path> drives_;
  NodeIdentity owner_;
  DriveRegistry registry_;
  std::uint64_t generation_ = 0;
  std::set<std::filesystem::path> ours_;  // drives whose file, if there is one, may be replaced
};

}  // namespace spoor::tracker
