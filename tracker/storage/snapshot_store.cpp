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
    const bool in_order = state.history.empty() || state.history.back().last < cycle.id;
    if (cycle.id < state.current && cycle.id.value > 0 && in_order) {
      MarkSet marks;
      marks.add_filter(cycle.filter);
      state.history.push_back({cycle.id, std::make_shared<const MarkSet>(std::move(marks))});
    } else {
      current.add_filter(cycle.filter);  // unusable number: its marks go to the current cycle
    }
  }
  if (!state.history.empty()) state.oldest_kept = state.history.front().last;
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
                             FindOverlap find_overlap, std::uint64_t bytes_max)
    : files_(files),
      drives_(std::move(drives)),
      owner_(std::move(owner)),
      registry_(files, data_dir, std::move(find_overlap)),
      bytes_max_(bytes_max),
      is_ours_(drives_.size()) {}

LoadedSnapshot SnapshotStore::load(const std::optional<InstanceId>& living) {
  LoadedSnapshot loaded;
  if (auto known = registry_.load(drives_); !known) loaded.registry_error = known.error().message;
  for (std::size_t i = 0; i < drives_.size(); ++i) {
    loaded.drives.push_back(load_from(drives_[i], living, loaded));
    is_ours_[i] = loaded.drives.back().ok ? 1 : 0;
  }
  return loaded;
}

DriveState SnapshotStore::load_from(const std::filesystem::path& drive,
                                    const std::optional<InstanceId>& living, LoadedSnapshot& loaded) {
  const auto identity = registry_.check(drive);
  const std::string id = registry_.id_of(drive);
  if (!identity) {
    loaded.any_lost = true;
    return {drive, false, identity.error().message, id};
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
  const auto bytes = base::read_if_there(files_, file, bytes_max_);
  if (!bytes) return bytes.error();
  if (!*bytes) return std::optional<Snapshot>{};
  auto snapshot = decode_any(**bytes, owner_);
  if (snapshot) return std::optional(*std::move(snapshot));
  return base::wrap(file.native(), snapshot.error());
}

bool SavedSnapshot::durable() const {
  return std::any_of(drives.begin(), drives.end(), [](const DriveState& drive) { return drive.ok; });
}

PreparedSnapshot SnapshotStore::prepare(const TrackerState& state, base::WallTime now) {
  ++generation_;
  return {generation_, now, state.position, encode_snapshot({owner_, generation_, now, state})};
}

DriveState SnapshotStore::save_to(std::size_t drive, const PreparedSnapshot& snapshot) {
  const std::filesystem::path& path = drives_[drive];
  DriveState saved{.drive = path};
  auto done = take_in(path);
  if (done && is_ours_[drive] == 0) done = make_way(path, saved.put_aside);
  if (done) done = base::replace_file(files_, snapshot_file(path), snapshot.bytes);
  is_ours_[drive] = done ? 1 : 0;  // after a failure it may return with another file
  saved.ok = done.has_value();
  if (!done) saved.error = done.error().message;
  saved.id = registry_.id_of(path);
  saved.is_refused = !done && done.error().code == Errc::drive_refused;
  if (!saved.is_refused) saved.space = space_of(path);
  return saved;
}

DriveState SnapshotStore::check(std::size_t drive) const {
  const std::filesystem::path& path = drives_[drive];
  const auto identity = registry_.check(path);
  if (identity) return {.drive = path, .ok = true, .id = registry_.id_of(path), .space = space_of(path)};
  return {.drive = path, .error = identity.error().message, .id = registry_.id_of(path), .is_refused = true};
}

std::optional<base::DiskSpace> SnapshotStore::space_of(const std::filesystem::path& drive) const {
  auto space = files_.space(drive);
  return space ? std::optional(*std::move(space)) : std::nullopt;
}

base::Result<> SnapshotStore::touch(std::size_t drive, const std::string& name) const {
  if (const auto identity = registry_.check(drives_[drive]); !identity) return identity.error();
  const auto file = spoor_directory(drives_[drive]) / name;
  if (const auto created = files_.create(file); !created) return created.error();
  return files_.remove(file);
}

base::Result<> SnapshotStore::stamp(std::size_t drive, const DriveStamp& stamp) const {
  if (const auto identity = registry_.check(drives_[drive]); !identity) return identity.error();
  const auto file = drives_[drive] / drive_stamp_file;
  const std::filesystem::path aside = file.native() + ".tmp";
  const auto created = files_.create(aside);
  if (!created) return created.error();
  auto done = (*created)->append(format_drive_stamp(stamp));
  return done ? files_.rename(aside, file) : done;
}

DriveState SnapshotStore::failed_state(std::size_t drive, std::string error) const {
  return {drives_[drive], false, std::move(error), registry_.id_of(drives_[drive])};
}

base::Result<> SnapshotStore::take_in(const std::filesystem::path& drive) {
  const auto identity = registry_.check(drive);
  if (!identity) return identity.error();
  return *identity == DriveIdentity::known ? base::Result<>() : registry_.admit(drive);
}

base::Result<> SnapshotStore::make_way(const std::filesystem::path& drive, std::string& put_aside) {
  const auto file = snapshot_file(drive);
  const auto bytes = base::read_if_there(files_, file, bytes_max_);
  const bool is_too_large = !bytes && bytes.error().code == std::errc::file_too_large;
  if (!bytes && !is_too_large) return bytes.error();
  if (bytes && !*bytes) return {};
  const auto snapshot = bytes ? decode_any(**bytes, owner_) : bytes.error();
  if (snapshot) return {};
  const std::filesystem::path aside =
      file.native() + suffix_of(snapshot.error(), bytes ? std::string_view(**bytes) : std::string_view());
  if (auto done = files_.rename(file, aside); !done) return done;
  put_aside = fmt::format("{}: {}; kept as {}", file.native(), snapshot.error().message, aside.native());
  return {};
}

std::vector<std::string> SnapshotStore::ids() const {
  std::vector<std::string> ids;
  ids.reserve(drives_.size());
  for (const auto& drive : drives_) ids.push_back(registry_.id_of(drive));
  return ids;
}

base::Result<std::size_t> SnapshotStore::find(const std::filesystem::path& given) const {
  std::filesystem::path drive = given.lexically_normal();
  if (!drive.has_filename()) drive = drive.parent_path();
  const auto found = std::find(drives_.begin(), drives_.end(), drive);
  if (found != drives_.end()) return static_cast<std::size_t>(found - drives_.begin());
  return base::Error(std::make_error_code(std::errc::invalid_argument),
                     fmt::format("{} is not among the configured drives", base::printable(drive.native())));
}

}  // namespace spoor::tracker
