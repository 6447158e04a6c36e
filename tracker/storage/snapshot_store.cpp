#include "tracker/storage/snapshot_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/printable.h"
#include "tracker/errors.h"
#include "tracker/storage/minio_snapshot.h"

namespace spoor::tracker {
namespace {

// Converts a MinIO file to a snapshot: its marks, in a new instance that no scanner has a cursor of.
Snapshot imported(const MinioSnapshot& minio, const NodeIdentity& owner) {
  Snapshot snapshot;
  snapshot.owner = owner;
  snapshot.saved_at = minio.saved_at;
  TrackerState& state = snapshot.state;
  state.instance = InstanceId::random();
  state.complete_since_birth = false;
  state.current = {std::clamp<std::uint64_t>(minio.current.value, 1, CycleId::jump_max)};
  state.current_opened_at = minio.saved_at;
  state.oldest_kept = state.current;
  MarkSet current;
  for (const MinioCycle& cycle : minio.cycles) {
    const bool in_order = state.history.empty() || state.history.back().id < cycle.id;
    if (cycle.id < state.current && cycle.id.value > 0 && in_order) {
      MarkSet marks;
      marks.add_filter(cycle.filter);
      state.history.push_back({cycle.id, std::make_shared<const MarkSet>(std::move(marks))});
    } else {
      current.add_filter(cycle.filter);  // unusable number: its marks go to the current cycle
    }
  }
  if (!state.history.empty()) state.oldest_kept = state.history.front().id;
  state.current_marks = std::make_shared<const MarkSet>(std::move(current));
  return snapshot;
}

// The snapshot of the highest rank is used. A drive that was absent may hold an ended instance with a high
// generation. MinIO files have no generation, only the time of the save.
auto rank_of(const Snapshot& snapshot, const std::optional<InstanceId>& living) {
  const bool is_living = snapshot.state.instance == living;
  // Two snapshots of one instance can have the same generation, if drives were absent alternately. Positions
  // are unique.
  return std::tuple(is_living, is_living ? snapshot.state.position : 0, snapshot.generation,
                    snapshot.saved_at);
}

base::Result<Snapshot> decode_any(const std::string& bytes, const NodeIdentity& owner) {
  if (!bytes.empty() && static_cast<std::uint8_t>(bytes[0]) == minio_snapshot_version) {
    const auto minio = decode_minio_snapshot(bytes);
    if (!minio) return minio.error();
    return imported(*minio, owner);
  }
  auto snapshot = decode_snapshot(bytes);
  if (!snapshot) return snapshot.error();
  if (snapshot->owner != owner) {
    return base::Error(Errc::snapshot_foreign, fmt::format("belongs to node '{}' of cluster '{}'",
                                                           snapshot->owner.node, snapshot->owner.cluster));
  }
  return snapshot;
}

// The suffix under which a file that is no snapshot of this node is kept.
std::string suffix_of(const base::Error& error, std::string_view bytes) {
  if (error.code == Errc::snapshot_foreign) return ".foreign";
  if (error.code == Errc::snapshot_unknown) {
    return fmt::format(".v{}", static_cast<unsigned char>(bytes.front()));
  }
  return ".corrupt";
}

}  // namespace

std::filesystem::path snapshot_file(const std::filesystem::path& drive) {
  return spoor_directory(drive) / ".tracker.bin";
}

SnapshotStore::SnapshotStore(base::FileSystem& files, std::vector<std::filesystem::path> drives,
                             NodeIdentity owner, const std::filesystem::path& data_dir,
                             FindOverlap find_overlap)
    : files_(files),
      drives_(std::move(drives)),
      owner_(std::move(owner)),
      registry_(files, data_dir, std::move(find_overlap)) {}

LoadedSnapshot SnapshotStore::load(const std::optional<InstanceId>& living) {
  LoadedSnapshot loaded;
  ours_.clear();
  if (auto known = registry_.load(drives_); !known) loaded.registry_error = known.error().message;
  for (const auto& drive : drives_) loaded.drives.push_back(load_from(drive, living, loaded));
  return loaded;
}

DriveState SnapshotStore::load_from(const std::filesystem::path& drive,
                                    const std::optional<InstanceId>& living, LoadedSnapshot& loaded) {
  const DriveCheck check = registry_.check(drive);
  const std::string id = registry_.id_of(drive);
  if (check.identity == DriveIdentity::refused) {
    loaded.any_lost = true;
    return {drive, false, check.error, id};
  }
  auto snapshot = read_from(drive);
  if (!snapshot) {
    loaded.any_lost = loaded.any_lost || snapshot.error().code != Errc::snapshot_foreign;
    return {drive, false, snapshot.error().message, id};
  }
  if (auto synced = sync_what_was_read(drive); !synced) {
    // A snapshot exists, or may exist after the next power cut, and is not used.
    loaded.any_lost = true;
    return {drive, false, synced.error().message, id};
  }
  if (*snapshot) {
    generation_ = std::max(generation_, (*snapshot)->generation);
    const bool is_better = !loaded.newest || rank_of(*loaded.newest, living) < rank_of(**snapshot, living);
    if (is_better) loaded.newest = **std::move(snapshot);
  }
  ours_.insert(drive);
  return {drive, true, {}, id};
}

// After a process was killed, a power cut can still lose its last writes: the state must not depend on them.
base::Result<> SnapshotStore::sync_what_was_read(const std::filesystem::path& drive) {
  const auto directory = spoor_directory(drive);
  auto done = files_.sync_directory(directory);
  if (!done && done.error().code == std::errc::no_such_file_or_directory) return {};  // no file to sync
  if (done) done = files_.sync_directory(drive);
  return done;
}

base::Result<std::optional<Snapshot>> SnapshotStore::read_from(const std::filesystem::path& drive) {
  const auto file = snapshot_file(drive);
  const auto bytes = base::read_if_there(files_, file, snapshot_bytes_max);
  if (!bytes) return bytes.error();
  if (!*bytes) return std::optional<Snapshot>{};
  auto snapshot = decode_any(**bytes, owner_);
  if (snapshot) return std::optional(*std::move(snapshot));
  return base::wrap(file.native(), snapshot.error());
}

bool SavedSnapshot::durable() const {
  return std::any_of(drives.begin(), drives.end(), [](const DriveState& drive) { return drive.ok; });
}

SavedSnapshot SnapshotStore::save(const TrackerState& state, base::WallTime now) {
  SavedSnapshot saved;
  saved.generation = ++generation_;
  saved.saved_at = now;
  const std::string bytes = encode_snapshot({owner_, saved.generation, now, state});
  saved.bytes = bytes.size();
  for (const auto& drive : drives_) {
    const auto done = save_to(drive, saved, bytes);
    saved.drives.push_back(
        {drive, done.has_value(), done ? std::string() : done.error().message, registry_.id_of(drive)});
    saved.drives.back().is_refused = !done && done.error().code == Errc::drive_refused;
  }
  return saved;
}

base::Result<> SnapshotStore::save_to(const std::filesystem::path& drive, SavedSnapshot& saved,
                                      const std::string& bytes) {
  auto done = take_in(drive);
  if (done && !ours_.contains(drive)) done = make_way(drive, saved);
  if (done) done = base::replace_file(files_, snapshot_file(drive), bytes);
  if (done) {
    ours_.insert(drive);
  } else {
    ours_.erase(drive);  // it may return with another file
  }
  return done;
}

base::Result<> SnapshotStore::take_in(const std::filesystem::path& drive) {
  const DriveCheck check = registry_.check(drive);
  if (check.identity == DriveIdentity::refused) return base::Error(Errc::drive_refused, check.error);
  if (check.identity == DriveIdentity::known) return {};
  return registry_.admit(drive);
}

base::Result<> SnapshotStore::make_way(const std::filesystem::path& drive, SavedSnapshot& saved) {
  const auto file = snapshot_file(drive);
  const auto bytes = base::read_if_there(files_, file, snapshot_bytes_max);
  if (!bytes) return bytes.error();
  if (!*bytes) return {};
  const auto snapshot = decode_any(**bytes, owner_);
  if (snapshot) return {};
  const std::filesystem::path aside = file.native() + suffix_of(snapshot.error(), **bytes);
  if (auto done = files_.rename(file, aside); !done) return done;
  saved.put_aside.push_back(
      fmt::format("{}: {}; kept as {}", file.native(), snapshot.error().message, aside.native()));
  return {};
}

base::Result<> SnapshotStore::accept(const std::filesystem::path& given) {
  std::filesystem::path drive = given.lexically_normal();
  if (!drive.has_filename()) drive = drive.parent_path();
  if (std::find(drives_.begin(), drives_.end(), drive) != drives_.end()) return registry_.admit(drive);
  return base::Error(std::make_error_code(std::errc::invalid_argument),
                     fmt::format("{} is not among the configured drives", base::printable(drive.native())));
}

}  // namespace spoor::tracker
