#include "tracker/storage/snapshot_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "tests/fakes/memory_file_system.h"
#include "tests/tracker/minio_samples.h"
#include "tests/tracker/samples.h"

namespace spoor::tracker {
namespace {

using fakes::MemoryFileSystem;
using Fate = MemoryFileSystem::Fate;
using Paths = std::vector<std::filesystem::path>;
using ::testing::HasSubstr;

const NodeIdentity owner{"cluster", "node"};
const base::WallTime now{std::chrono::seconds(1'700'000'000)};

class SnapshotStoreTest : public ::testing::Test {
 protected:
  SnapshotStoreTest() {
    files_.make_directory("/data");
    for (const auto& drive : drives_) files_.make_directory(drive);
  }

  SnapshotStore store() { return {files_, drives_, owner, "/data"}; }

  static SavedSnapshot save(SnapshotStore&& store, const TrackerState& state) { return save(store, state); }
  static SavedSnapshot save(SnapshotStore& store, const TrackerState& state) {
    const PreparedSnapshot snapshot = store.prepare(state, now);
    SavedSnapshot saved = snapshot.on_no_drive();
    for (std::size_t drive = 0; drive < store.count(); ++drive)
      saved.drives.push_back(store.save_to(drive, snapshot));
    return saved;
  }

  // A state told apart by its number: the current cycle, with one mark.
  static TrackerState state(std::uint64_t number) {
    TrackerState state;
    state.instance = instance_of(1);
    state.current = {number};
    state.current_marks = std::make_shared<const MarkSet>(mark_set_of({"bucket/" + std::to_string(number)}));
    return state;
  }

  void put(const std::filesystem::path& drive, std::string bytes) {
    files_.put(snapshot_file(drive), std::move(bytes));
  }
  void put_generation(const std::filesystem::path& drive, std::uint64_t generation) {
    // The clock went back between the saves.
    put(drive, encode_snapshot({owner, generation, now - std::chrono::hours(generation), state(generation)}));
  }

  MemoryFileSystem files_;
  const Paths drives_{"/mnt/1", "/mnt/2", "/mnt/3"};
};

TEST_F(SnapshotStoreTest, EmptyDrives_LoadNoSnapshotWithoutLoss) {
  const LoadedSnapshot loaded = store().load();
  EXPECT_FALSE(loaded.newest);
  EXPECT_FALSE(loaded.any_lost);
  ASSERT_EQ(loaded.drives.size(), 3U);
  for (const DriveState& drive : loaded.drives) EXPECT_TRUE(drive.ok) << drive.error;
}

TEST_F(SnapshotStoreTest, SavedSnapshot_IsOnEveryDriveAndLoaded) {
  const SavedSnapshot saved = save(store(), varied_state());
  EXPECT_TRUE(saved.durable());
  const auto bytes = files_.content(snapshot_file(drives_[0]));
  ASSERT_TRUE(bytes);
  EXPECT_EQ(saved.bytes, bytes->size());
  for (const auto& drive : drives_) EXPECT_TRUE(files_.content(snapshot_file(drive)) == bytes) << drive;
  files_.crash();  // the new directory .spoor must be as durable as the file in it
  const LoadedSnapshot loaded = store().load();
  ASSERT_TRUE(loaded.newest);
  EXPECT_EQ(loaded.newest->generation, saved.generation);
  EXPECT_EQ(loaded.newest->saved_at, now);
  EXPECT_TRUE(bytes_of(loaded.newest->state) == bytes_of(varied_state()));
}

// ancestor 1: the last drive read wins.
TEST_F(SnapshotStoreTest, NewestGeneration_IsLoadedInAnyDriveOrder) {
  std::vector<std::uint64_t> generations{4, 5, 6};
  do {
    for (std::size_t at = 0; at < drives_.size(); ++at) put_generation(drives_[at], generations[at]);
    const LoadedSnapshot loaded = store().load();
    ASSERT_TRUE(loaded.newest);
    EXPECT_EQ(loaded.newest->generation, 6U);
    EXPECT_EQ(loaded.newest->state.current, CycleId{6});
    EXPECT_FALSE(loaded.any_lost);
  } while (std::next_permutation(generations.begin(), generations.end()));
}

// A drive that was away while the node lost its memory holds more saves of the one that ended.
TEST_F(SnapshotStoreTest, SnapshotOfCurrentInstance_IsPreferredToHigherGeneration) {
  TrackerState living = state(2);
  living.instance = instance_of(9);
  put(drives_[0], encode_snapshot({owner, 3, now, living}));
  put_generation(drives_[1], 100);
  SnapshotStore store = this->store();
  EXPECT_EQ(store.load(instance_of(9)).newest.value().generation, 3U);
  EXPECT_EQ(save(store, living).generation, 101U);
}

TEST_F(SnapshotStoreTest, UnreadableDrive_IsReportedAsPossibleLoss) {
  put_generation(drives_[1], 5);
  files_.fail_below(drives_[0], EIO);
  const LoadedSnapshot loaded = store().load();
  ASSERT_TRUE(loaded.newest);
  EXPECT_TRUE(loaded.any_lost);
  EXPECT_FALSE(loaded.drives[0].ok);
}

// What it says is not known to survive, and must not be taken for never having been there.
TEST_F(SnapshotStoreTest, SnapshotThatCannotBeSynced_CountsAsLost) {
  put_generation(drives_[1], 41);
  const auto count = files_.clone();
  count->reset_calls();
  SnapshotStore(*count, drives_, owner, "/data").load();
  std::size_t unused = 0;
  for (std::size_t call = 1; call <= count->calls(); ++call) {
    const auto files = files_.clone();
    files->fail_call(call, EIO);
    const LoadedSnapshot loaded = SnapshotStore(*files, drives_, owner, "/data").load();
    if (loaded.newest) continue;
    EXPECT_TRUE(loaded.any_lost) << "call " << call;
    ++unused;
  }
  EXPECT_GE(unused, 3U) << "the read, and the two syncs";
}

// What a process left behind that was killed before it synced the directories.
TEST_F(SnapshotStoreTest, LoadedSnapshot_SurvivesPowerCut) {
  const auto file = snapshot_file(drives_[0]);
  ASSERT_TRUE(files_.create_directory(file.parent_path()));
  const auto output = files_.create(file).value();
  ASSERT_TRUE(output->append(encode_snapshot({owner, 3, now, state(3)})));
  ASSERT_TRUE(output->sync());
  ASSERT_TRUE(store().load().newest);
  files_.crash();
  EXPECT_TRUE(store().load().newest);
}

TEST_F(SnapshotStoreTest, SaveAfterLoad_ContinuesFromNewestGeneration) {
  put_generation(drives_[1], 41);
  SnapshotStore store = this->store();
  store.load();
  EXPECT_EQ(save(store, state(2)).generation, 42U);
  EXPECT_EQ(save(store, state(2)).generation, 43U);
}

constexpr std::uint64_t bytes_max = 5'000;

struct BadFile {
  const char* name;
  std::string bytes;
  const char* suffix;
  const char* reason;
  bool lost;
};

std::vector<BadFile> bad_files() {
  const std::string whole = encode_snapshot({owner, 5, now, varied_state()});
  const Snapshot foreign_node{{"cluster", "other"}, 99, now, varied_state()};
  const Snapshot foreign_cluster{{"other", "node"}, 99, now, varied_state()};
  return {
      {"empty", "", "corrupt", "empty", true},
      {"truncated", whole.substr(0, whole.size() / 2), "corrupt", "checksum", true},
      {"flipped", flipped(whole, whole.size() / 2), "corrupt", "checksum", true},
      {"text", std::string("\x08") + "something quite different", "corrupt", "not a tracker's", true},
      {"flipped into MinIO's version", flipped(whole, 0, 0x0f), "corrupt", "corrupt", true},
      {"truncated MinIO", minio_file(1, 20, {19}).substr(0, 60), "corrupt", "longer than what is left", true},
      {"of another node", encode_snapshot(foreign_node), "foreign", "node 'other' of cluster 'cluster'",
       false},
      {"of another cluster", encode_snapshot(foreign_cluster), "foreign", "node 'node' of cluster 'other'",
       false},
      {"of a newer version", "\x09 from the future", "v9", "version 9", true},
      {"of MinIO's version 6", "\x06 from the past", "v6", "version 6", true},
      {"of version 255", "\xff", "v255", "version 255", true},
      {"larger than any", std::string(bytes_max + 1, '\0'), "corrupt", "File too large", true},
  };
}

// ancestor 2 and 3: a bad file is reported by drive and reason, and kept.
TEST_F(SnapshotStoreTest, BadFile_IsReportedAndKeptAside) {
  for (const BadFile& bad : bad_files()) {
    SCOPED_TRACE(bad.name);
    MemoryFileSystem files;
    files.make_directory("/data");
    for (const auto& drive : drives_) files.make_directory(drive);
    const auto file = snapshot_file(drives_[1]);
    files.put(file, bad.bytes);

    SnapshotStore store(files, drives_, owner, "/data", {}, bytes_max);
    const LoadedSnapshot loaded = store.load();

    EXPECT_FALSE(loaded.newest);
    EXPECT_EQ(loaded.any_lost, bad.lost);
    ASSERT_EQ(loaded.drives.size(), 3U);
    EXPECT_TRUE(loaded.drives[0].ok);
    EXPECT_TRUE(loaded.drives[2].ok);
    EXPECT_FALSE(loaded.drives[1].ok);
    EXPECT_EQ(loaded.drives[1].drive, drives_[1]);
    EXPECT_THAT(loaded.drives[1].error, HasSubstr(file.native()));
    EXPECT_THAT(loaded.drives[1].error, HasSubstr(bad.reason));
    EXPECT_EQ(files.content(file), bad.bytes) << "its loss is not on record yet";

    const SavedSnapshot saved = save(store, state(3));
    EXPECT_TRUE(saved.drives[1].ok);
    EXPECT_THAT(saved.drives[1].put_aside, HasSubstr(bad.reason));
    EXPECT_TRUE(saved.drives[0].put_aside.empty());
    EXPECT_EQ(files.content(file.native() + '.' + bad.suffix), bad.bytes);
  }
}

TEST_F(SnapshotStoreTest, BadFileOnOtherDrives_GoodSnapshotIsLoaded) {
  for (const BadFile& bad : bad_files()) {
    SCOPED_TRACE(bad.name);
    put(drives_[0], bad.bytes);
    put_generation(drives_[1], 5);
    put(drives_[2], bad.bytes);
    const LoadedSnapshot loaded = store().load();
    ASSERT_TRUE(loaded.newest);
    EXPECT_EQ(loaded.newest->generation, 5U);
    EXPECT_EQ(loaded.any_lost, bad.lost);
  }
}

TEST_F(SnapshotStoreTest, SpaceOfADrive_IsReportedUnlessItIsRefused) {
  files_.disk_space = {.bytes = 100, .free_bytes = 30, .used_bytes = 60, .type = "xfs"};
  SnapshotStore store = this->store();
  store.load();
  const auto saved = save(store, state(1)).drives[0].space;
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->used_bytes, 60U);
  EXPECT_EQ(store.check(0).space->type, "xfs");
  files_.put(drives_[0] / ".spoor/drive.json", R"({"id":"00112233445566778899aabbccddeeff"})");
  ASSERT_FALSE(store.check(0).ok);
  EXPECT_FALSE(store.check(0).space);
  EXPECT_FALSE(save(store, state(2)).drives[0].space);
}

TEST_F(SnapshotStoreTest, BadFileThatCannotBeKeptAside_IsNotReplaced) {
  put(drives_[0], "\x09 from the future");
  files_.put(drives_[0] / ".spoor/drive.json", R"({"id":"00112233445566778899aabbccddeeff"})");
  SnapshotStore store = this->store();
  store.load();
  ASSERT_TRUE(store.accept(0));
  files_.reset_calls();
  files_.fail_call(3, EROFS);  // the rename, behind the identity and the file
  const SavedSnapshot saved = save(store, state(3));
  EXPECT_FALSE(saved.drives[0].ok);
  EXPECT_THAT(saved.drives[0].error, HasSubstr("Read-only"));
  EXPECT_EQ(files_.content(snapshot_file(drives_[0])), "\x09 from the future");
}

// It was away at the start: nobody has looked at what it holds.
TEST_F(SnapshotStoreTest, BadFileOnReturnedDrive_IsKeptAside) {
  SnapshotStore store = this->store();
  files_.fail_below(drives_[0], EIO);
  store.load();
  EXPECT_FALSE(save(store, state(3)).drives[0].ok);
  files_.heal(drives_[0]);
  put(drives_[0], "\x09 from the future");
  EXPECT_TRUE(save(store, state(4)).drives[0].ok);
  EXPECT_EQ(files_.content(snapshot_file(drives_[0]).native() + ".v9"), "\x09 from the future");
}

// Nobody has looked at what it holds either.
TEST_F(SnapshotStoreTest, BadFileOnADriveThatFailedMeanwhile_IsKeptAside) {
  SnapshotStore store = this->store();
  store.load();
  EXPECT_TRUE(save(store, state(3)).drives[0].ok);
  files_.fail_below(drives_[0], EIO);
  EXPECT_FALSE(save(store, state(4)).drives[0].ok);
  files_.heal(drives_[0]);
  put(drives_[0], "\x09 from the future");
  EXPECT_TRUE(save(store, state(5)).drives[0].ok);
  EXPECT_EQ(files_.content(snapshot_file(drives_[0]).native() + ".v9"), "\x09 from the future");
}

// ancestor 14: a save that reached no drive does not count.
TEST_F(SnapshotStoreTest, FailedDrives_AreReportedAndSaveIsDurableOnOthers) {
  files_.fill(drives_[1]);
  const SavedSnapshot saved = save(store(), state(3));
  EXPECT_TRUE(saved.durable());
  EXPECT_TRUE(saved.drives[0].ok);
  EXPECT_FALSE(saved.drives[1].ok);
  EXPECT_THAT(saved.drives[1].error, HasSubstr("No space"));
  EXPECT_TRUE(saved.drives[2].ok);
  for (const auto& drive : drives_) files_.fail_below(drive, EIO);
  EXPECT_FALSE(save(store(), state(3)).durable());
  EXPECT_FALSE(save(SnapshotStore(files_, {}, owner, "/data"), state(3)).durable()) << "no drives";
}

TEST_F(SnapshotStoreTest, SaveAfterFailedSaves_IsNewest) {
  SnapshotStore store = this->store();
  save(store, state(3));
  files_.fill(drives_[0]);
  files_.fill(drives_[1]);
  save(store, state(4));
  for (const auto& drive : drives_) files_.heal(drive);
  files_.fill(drives_[2]);
  save(store, state(5));
  EXPECT_EQ(this->store().load().newest.value().state.current, CycleId{5});
}

TEST_F(SnapshotStoreTest, MissingDrive_IsNotCreated) {
  // An unmounted drive: a snapshot on the mount point would come to light at the wrong time.
  const Paths with_missing{"/mnt/1", "/mnt/missing"};
  const SavedSnapshot saved = save(SnapshotStore(files_, with_missing, owner, "/data"), state(3));
  EXPECT_TRUE(saved.drives[0].ok);
  EXPECT_FALSE(saved.drives[1].ok);
  EXPECT_FALSE(files_.exists("/mnt/missing"));
}

// ancestor 15: a reader, or a crash, finds the file short during most saves.
TEST_F(SnapshotStoreTest, PowerCutDuringSave_LeavesWholeSnapshotOnEveryDrive) {
  SPOOR_RANDOM(random);
  const auto prepared = [&](MemoryFileSystem& files) {
    files.make_directory("/data");
    for (const auto& drive : drives_) {
      files.put(snapshot_file(drive), encode_snapshot({owner, 7, now, state(7)}));
    }
    files.reset_calls();
  };
  MemoryFileSystem whole;
  prepared(whole);
  save(SnapshotStore(whole, drives_, owner, "/data"), state(8));
  const std::size_t calls = whole.calls();

  for (std::size_t stop = 1; stop <= calls + 1; ++stop) {
    for (int round = 0; round < 10; ++round) {
      MemoryFileSystem files;
      prepared(files);
      SnapshotStore store(files, drives_, owner, "/data");
      store.load();
      files.reset_calls();
      files.stop_at_call(stop);
      const SavedSnapshot saved = save(store, state(8));
      files.crash([&](const std::string&) { return static_cast<Fate>(random.below(3)); });

      const LoadedSnapshot loaded = SnapshotStore(files, drives_, owner, "/data").load();
      ASSERT_FALSE(loaded.any_lost) << "power cut before call " << stop;
      ASSERT_TRUE(loaded.newest);
      const std::uint64_t cycle = loaded.newest->state.current.value;
      ASSERT_TRUE(cycle == 8 || (cycle == 7 && !saved.durable())) << "power cut before call " << stop;
    }
  }
}

TEST_F(SnapshotStoreTest, MinioSnapshot_IsLoadedWithItsMarks) {
  put(drives_[1], minio_file(1'677'169'754, 20, {18, 19}));
  const LoadedSnapshot loaded = store().load();
  ASSERT_TRUE(loaded.newest);
  const TrackerState& state = loaded.newest->state;
  EXPECT_FALSE(state.complete_since_birth);
  EXPECT_FALSE(state.instance.is_none());
  EXPECT_EQ(state.current, CycleId{20});
  EXPECT_EQ(state.oldest_kept, CycleId{18});
  EXPECT_TRUE(contains(*state.current_marks, minio_path_of(20)));
  ASSERT_EQ(state.history.size(), 2U);
  EXPECT_TRUE(contains(*state.history[0].marks, minio_path_of(18)));
  EXPECT_TRUE(contains(*state.history[1].marks, minio_path_of(19)));
}

TEST_F(SnapshotStoreTest, MinioCyclesOutOfOrder_KeepTheirMarks) {
  // Cycles that went backwards (ancestor 8), twice the same, or zero.
  put(drives_[0], minio_file(1, 20, {19, 19, 0, 25, 20}));
  const TrackerState state = store().load().newest.value().state;
  MarkSet all = *state.current_marks;
  for (const ClosedSpan& span : state.history) {
    EXPECT_LT(span.last, state.current);
    all.merge(*span.marks);
  }
  for (const std::uint64_t cycle : {0U, 19U, 20U, 25U})
    EXPECT_TRUE(contains(all, minio_path_of(cycle))) << cycle;
  EXPECT_TRUE(decode_snapshot(encode_snapshot(snapshot_of(state)))) << "it can be saved as ours";
}

TEST_F(SnapshotStoreTest, MinioSnapshot_IsOlderThanAnySpoorSnapshot) {
  for (const bool ours_first : {true, false}) {
    put(drives_[ours_first ? 1 : 0], minio_file(1'900'000'000, 900, {}));
    put_generation(drives_[ours_first ? 0 : 1], 1);
    EXPECT_EQ(store().load().newest.value().state.current, CycleId{1});
    for (const std::size_t at : {0U, 1U}) EXPECT_TRUE(files_.exists(snapshot_file(drives_[at])));
  }
}

// ancestor 1
TEST_F(SnapshotStoreTest, SeveralMinioSnapshots_LastSavedIsLoadedInAnyDriveOrder) {
  std::vector<std::uint64_t> saved_s{1'677'000'001, 1'677'000'002, 1'677'000'003};
  do {
    for (std::size_t at = 0; at < drives_.size(); ++at)
      put(drives_[at], minio_file(saved_s[at], saved_s[at] % 100, {}));
    EXPECT_EQ(store().load().newest.value().state.current, CycleId{3});
  } while (std::next_permutation(saved_s.begin(), saved_s.end()));
}

}  // namespace
}  // namespace spoor::tracker
