// A disk under node.data_dir that is full, read-only, broken or silent while writers mark: what can't be
// kept is not acknowledged, what was acknowledged is kept, and all goes on by itself once the disk is well.
#include <fmt/format.h>

#include <future>

#include "tests/faults/data_dir_fixture.h"
#include "tests/support/process.h"

namespace spoor::faults {
namespace {

TEST_F(DataDirTest, FullTmpfs_StopsAcknowledgementsUntilThereIsSpace) {
  data().mount_tmpfs("4m");
  fills_up();
  expect_an_outage_loses_nothing();
}

// A mark that adds nothing to one that was refused is refused as well: neither is on the disk.
TEST_F(DataDirTest, FullDisk_RepeatOfARefusedMark_IsRefused) {
  data().mount_tmpfs("1m");
  start();
  const Filler filler(data_dir() / "filler");
  mark_alone_until_refused();
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto refused = request("POST", "/v1/marks", R"({"paths":["bucket/refused"]})");
    EXPECT_EQ(refused.status, 503U);
  }
  EXPECT_EQ(get("/v1/dirty?path=bucket/refused")["dirty"], true) << "it may be true, so it counts at once";
}

// A cycle that is opened and forgotten would be given again, to a scan that has seen it.
TEST_F(DataDirTest, FullDisk_NoCycleIsOpened) {
  data().mount_tmpfs("1m");
  start();
  const Filler filler(data_dir() / "filler");
  mark_alone_until_refused();
  request("POST", "/v1/peer/cycle", R"({"cluster":"default","current":9})");
  EXPECT_EQ(get("/v1/status")["cycle"]["current"], 1);
}

// What a remount does not allow while files are written to, a read-only mount on top does: the journal's
// open file goes on, and the next one can't be made.
TEST_F(DataDirTest, ReadOnlyDataDir_StopsAcknowledgementsUntilWritable) {
  MountPoint on_top(data_dir());
  break_disk_ = [&] {
    on_top.mount_directory_read_only(data_dir());
    request("POST", "/v1/snapshot");
  };
  mend_disk_ = [&] { on_top.unmount(); };
  expect_an_outage_loses_nothing();
}

TEST_F(DataImageTest, FullDisk_StopsAcknowledgementsUntilThereIsSpace) {
  fills_up();
  expect_an_outage_loses_nothing();
}

TEST_F(DataImageTest, KillOnFullDisk_LosesNoMark) {
  fills_up();
  expect_a_kill_in_an_outage_loses_nothing();
}

// What ext4 does when the disk fails it (errors=remount-ro). Not while a sync is under way: ext4 may report
// success for it then, and nobody could tell.
TEST_F(DataImageTest, FileSystemBecomesReadOnly_KeepsAcknowledgedMarks) {
  break_disk_ = [this] {
    daemon_->freeze();
    data().abort();
    daemon_->signal(SIGCONT);
  };
  mend_disk_ = [this] { mount_anew(); };
  expect_a_kill_in_an_outage_loses_nothing();
}

// A write that hangs must not hang the clients, nor what does not write.
TEST_F(DataImageTest, DiskHangs_StopsAcknowledgementsUntilItResponds) {
  std::optional<FrozenDisk> frozen;
  break_disk_ = [&] { frozen.emplace(data_dir()); };
  mend_disk_ = [&] { frozen.reset(); };
  expect_an_outage_loses_nothing();
}

// A scan fails, and nothing else: it leaves its space to the marks that are made all the while.
TEST_F(DataDirTest, ScanThatDoesNotFit_LeavesTheJournalItsSpace) {
  data().mount_tmpfs("2m");
  start();
  for (int parent = 0; parent < 100; ++parent) {
    for (int child = 0; child < 100; ++child)
      fs::create_directories(drive() / std::to_string(parent) / std::to_string(child));
  }
  const auto mark_many = [&](int attempt) {
    int marked = 0;
    while (marked < 200 && mark(fmt::format("bucket/{}/{}", attempt, marked))) ++marked;
    return marked;
  };
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto marked = std::async(std::launch::async, mark_many, attempt);
    const auto failed = spoor({"scan"});
    EXPECT_EQ(marked.get(), 200);
    EXPECT_EQ(failed.code, 1);
    EXPECT_NE(failed.err.find("too little space left in " + data_dir().native()), std::string::npos)
        << failed.err;
    EXPECT_EQ(fs::file_size(data_dir() / "scan.db-wal"), 0U);
    EXPECT_TRUE(mark("bucket/after"));
  }
  expect_healthy();
  const std::string before = instance();
  kill_hard();
  start();
  EXPECT_EQ(instance(), before) << daemon_->log();
  for (const char* path : {"bucket/0/0", "bucket/1/199", "bucket/after"})
    EXPECT_EQ(get(std::string("/v1/dirty?path=") + path)["dirty"], true) << path;
  support::run_command({"mount", "-o", "remount,size=64m", data_dir().native()});
  EXPECT_EQ(spoor({"scan"}).code, 0);
  EXPECT_EQ(spoor_json({"usage"})["dirs"], 10'100);
}

// SQLite calls it an I/O error where it can't make the index of its log.
TEST_F(DataDirTest, FullDisk_ScanDatabaseErrorNamesTheSpace) {
  data().mount_tmpfs("4m");
  start();
  ASSERT_EQ(spoor({"scan"}).code, 0);
  fs::remove(data_dir() / "scan.db-shm");
  const Filler filler(data_dir() / "filler");
  for (const char* command : {"usage", "scans"}) {
    const auto failed = spoor({command});
    EXPECT_EQ(failed.code, 1);
    EXPECT_NE(failed.err.find("too little space left in " + data_dir().native() + ": free some"),
              std::string::npos)
        << failed.err;
  }
}

}  // namespace
}  // namespace spoor::faults
