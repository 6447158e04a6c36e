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
#include "tracker/storage/drive_registry.h"
#include "tracker/storage/snapshot.h"

namespace spoor::tracker {

// `<drive>/.spoor/.tracker.bin`
std::filesystem::path snapshot_file(const std::filesystem::path& drive);

// The result of a load or a save for one drive.
struct DriveState {
  std::filesystem::path drive;
  bool ok = false;
  std::string error;        // set if not ok
  std::string id = {};      // the identity stored for it; empty if there is none yet
  bool is_refused = false;  // not ok, because it is not the known drive
};

struct LoadedSnapshot {
  std::optional<Snapshot> newest;
  // Some drive holds, or may hold, a snapshot of this node that can't be used.
  bool any_lost = false;
  std::vector<DriveState> drives;
  std::string registry_error;  // why drives.json can't be used; empty if it can
};

struct SavedSnapshot {
  std::uint64_t generation = 0;
  std::uint64_t bytes = 0;
  base::WallTime saved_at{};
  std::vector<DriveState> drives;
  std::vector<std::string> put_aside;  // a sentence for each file that was renamed

  // Whether the snapshot is durable on at least one drive.
  bool durable() const;
};

// The snapshots of one node: the same snapshot on every drive that is not refused.
//
// Not thread-safe.
class SnapshotStore {
 public:
  // `files` must outlive the store. `find_overlap` as in DriveRegistry.
  SnapshotStore(base::FileSystem& files, std::vector<std::filesystem::path> drives, NodeIdentity owner,
                const std::filesystem::path& data_dir, FindOverlap find_overlap = {});

  // Loads the newest valid snapshot of this node, by generation, independent of the order of the drives; one
  // of the `living` instance takes precedence. Invalid files are reported. A MinIO file counts as older than
  // any snapshot of Spoor. Refused drives are not read. Changes no file.
  LoadedSnapshot load(const std::optional<InstanceId>& living = std::nullopt);

  // Saves to every drive, on each atomically. A missing drive is not created, a refused drive is not touched,
  // and a drive at a new path is admitted. An existing file that is no snapshot of this node is renamed
  // first: to `.tracker.bin.corrupt`, `.foreign` (of another node) or `.v9` (of an unknown version).
  SavedSnapshot save(const TrackerState& state, base::WallTime now);

  // Makes the drive that is at this path now the known one. Fails with std::errc::invalid_argument if the
  // path is not one of the store's drives; otherwise as DriveRegistry::admit().
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
  std::set<std::filesystem::path> ours_;  // drives whose file, if any, may be replaced
};

}  // namespace spoor::tracker
