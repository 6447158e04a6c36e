#include "tracker/snapshot_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "tracker/errors.h"
#include "tracker/minio_snapshot.h"

namespace spoor::tracker {
namespace {

// A MinIO file as a state of ours: its marks, in an instance that no scanner has a cursor for.
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
      current.add_filter(cycle.filter);  // numbered oddly: rather too new than not at all
    }
  }
  if (!state.history.empty()) state.oldest_kept = state.history.front().id;
  state.current_marks = std::make_shared<const MarkSet>(std::move(current));
  return snapshot;
}

// Files of MinIO's have no generation, only the time of the save.
auto age_of(const Snapshot& snapshot) { return std::pair(snapshot.generation, snapshot.saved_at); }

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

}  // namespace

std::filesystem::path snapshot_file(const std::filesystem::path& drive) {
  return drive / ".spoor" / ".tracker.bin";
}

bool SavedSnapshot::durable() const {
  return std::any_of(drives.begin(), drives.end(), [](const DriveState& drive) { return drive.ok; });
}

SnapshotStore::SnapshotStore(base::FileSystem& files, std::vector<std::filesystem::path> drives,
                             NodeIdentity owner)
    : files_(files), drives_(std::move(drives)), owner_(std::move(owner)) {}

LoadedSnapshot SnapshotStore::load() {
  LoadedSnapshot loaded;
  for (const auto& drive : drives_) {
    auto snapshot = load_from(drive);
    if (!snapshot) {
      loaded.drives.push_back({drive, false, snapshot.error().message});
      loaded.any_lost = loaded.any_lost || snapshot.error().code != Errc::snapshot_foreign;
      continue;
    }
    loaded.drives.push_back({drive, true, {}});
    if (!*snapshot) continue;
    const bool is_newer = !loaded.newest || age_of(*loaded.newest) < age_of(**snapshot);
    if (is_newer) loaded.newest = **std::move(snapshot);
  }
  if (loaded.newest) generation_ = loaded.newest->generation;
  return loaded;
}

base::Result<std::optional<Snapshot>> SnapshotStore::load_from(const std::filesystem::path& drive) const {
  const auto file = snapshot_file(drive);
  const auto bytes = files_.read(file, snapshot_bytes_max);
  if (!bytes) {
    if (bytes.error().code == std::errc::no_such_file_or_directory) return std::optional<Snapshot>{};
    return bytes.error();
  }
  auto snapshot = decode_any(*bytes, owner_);
  if (snapshot) return std::optional(*std::move(snapshot));

  const base::Error& error = snapshot.error();
  std::string suffix = "corrupt";
  if (error.code == Errc::snapshot_foreign) suffix = "foreign";
  if (error.code == Errc::snapshot_unknown)
    suffix = fmt::format("v{}", static_cast<unsigned char>(bytes->front()));
  return base::Error(error.code,
                     fmt::format("{}: {}{}", file.native(), error.message, put_aside(drive, suffix)));
}

std::string SnapshotStore::put_aside(const std::filesystem::path& drive, const std::string& suffix) const {
  const auto file = snapshot_file(drive);
  const auto aside = std::filesystem::path(file.native() + '.' + suffix);
  if (auto done = files_.rename(file, aside); !done) return fmt::format("; {}", done.error().message);
  return fmt::format("; kept as {}", aside.native());
}

SavedSnapshot SnapshotStore::save(const TrackerState& state, base::WallTime now) {
  SavedSnapshot saved;
  saved.generation = ++generation_;
  saved.saved_at = now;
  const std::string bytes = encode_snapshot({owner_, saved.generation, now, state});
  saved.bytes = bytes.size();
  for (const auto& drive : drives_) {
    auto done = save_to(drive, bytes);
    saved.drives.push_back({drive, done.has_value(), done ? std::string{} : done.error().message});
  }
  return saved;
}

base::Result<> SnapshotStore::save_to(const std::filesystem::path& drive, const std::string& bytes) const {
  const auto file = snapshot_file(drive);
  if (auto done = files_.create_directory(file.parent_path()); !done) return done;
  if (auto done = files_.sync_directory(drive); !done) return done;  // or a power cut takes it away again
  return base::replace_file(files_, file, bytes);
}

}  // namespace spoor::tracker
