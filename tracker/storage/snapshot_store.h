#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
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
  std::string error = {};                     // set if not ok
  std::string id = {};                        // the identity stored for it; empty if there is none yet
  bool is_refused = false;                    // not ok, because it is not the known drive
  std::optional<base::DiskSpace> space = {};  // of a drive that is not refused
  std::string put_aside = {};                 // a sentence, if a save renamed a file
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

  // Whether the snapshot is durable on at least one drive.
  bool durable() const;
};

// An encoded snapshot, to be written to the drives.
struct PreparedSnapshot {
  std::uint64_t generation = 0;
  base::WallTime saved_at{};
  JournalPosition position = 0;  // of its state
  std::string bytes;

  SavedSnapshot on_no_drive() const { return {generation, bytes.size(), saved_at, {}}; }
};

// The snapshots of one node: the same snapshot on every drive that is not refused.
//
// save_to(), accept(), touch(), stamp() and check() may run at the same time for different drives,
// failed_state() at any time. A drive that hangs blocks only the calls for it. Otherwise not thread-safe.
class SnapshotStore {
 public:
  // `files` must outlive the store. `find_overlap` as in DriveRegistry. A file of over `bytes_max` is
  // invalid, and is not read.
  SnapshotStore(base::FileSystem& files, std::vector<std::filesystem::path> drives, NodeIdentity owner,
                const std::filesystem::path& data_dir, FindOverlap find_overlap = {},
                std::uint64_t bytes_max = snapshot_bytes_max);

  // Loads the newest valid snapshot of this node, by generation, independent of the order of the drives; one
  // of the `living` instance takes precedence. Invalid files are reported. A MinIO file counts as older than
  // any snapshot of Spoor. Refused drives are not read. Changes no file.
  LoadedSnapshot load(const std::optional<InstanceId>& living = std::nullopt);

  // The next generation. Does not use the drives.
  PreparedSnapshot prepare(const TrackerState& state, base::WallTime now);

  // Saves to one drive, by its index, atomically. A missing drive is not created, a refused drive is not
  // touched, and a drive at a new path is admitted. An existing file that is no snapshot of this node is
  // renamed first: to `.tracker.bin.corrupt`, `.foreign` (of another node) or `.v9` (of an unknown version).
  DriveState save_to(std::size_t drive, const PreparedSnapshot& snapshot);

  // Reads whether the drive is the known one, and its space.
  DriveState check(std::size_t drive) const;

  // Creates a file of this name in `.spoor` of a drive that is not refused, and removes it.
  base::Result<> touch(std::size_t drive, const std::string& name) const;

  // Writes the stamp of a scan to a drive that is not refused. It is not synced: a power cut that takes it
  // may have taken changes that the scan has seen.
  base::Result<> stamp(std::size_t drive, const DriveStamp& stamp) const;

  // The state of a drive that is not ok, for this reason. Never blocks.
  DriveState failed_state(std::size_t drive, std::string error) const;

  // The ids of the drives, of one by its path; empty where none is known. Never blocks; thread-safe.
  std::string id_of(const std::filesystem::path& drive) const { return registry_.id_of(drive); }
  std::vector<std::string> ids() const;

  // The index of the drive with this path. Fails with std::errc::invalid_argument if there is none.
  base::Result<std::size_t> find(const std::filesystem::path& given) const;

  // Makes the drive that is at this path now the known one, as DriveRegistry::admit().
  base::Result<> accept(std::size_t drive) { return registry_.admit(drives_[drive]); }

  std::size_t count() const { return drives_.size(); }

 private:
  DriveState load_from(const std::filesystem::path& drive, const std::optional<InstanceId>& living,
                       LoadedSnapshot& loaded);
  std::optional<base::DiskSpace> space_of(const std::filesystem::path& drive) const;
  base::Result<> sync_what_was_read(const std::filesystem::path& drive);
  base::Result<std::optional<Snapshot>> read_from(const std::filesystem::path& drive);
  base::Result<> take_in(const std::filesystem::path& drive);
  base::Result<> make_way(const std::filesystem::path& drive, std::string& put_aside);

  base::FileSystem& files_;
  const std::vector<std::filesystem::path> drives_;
  NodeIdentity owner_;
  DriveRegistry registry_;
  const std::uint64_t bytes_max_;
  std::uint64_t generation_ = 0;
  std::vector<std::uint8_t> is_ours_;  // by drive: whether its file, if any, may be replaced
};

}  // namespace spoor::tracker
