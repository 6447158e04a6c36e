// Drives that are removed, come back, are swapped or accepted while the daemon runs: nothing is written
// where the drive only used to be.
#include "tests/faults/drive_fixture.h"

namespace spoor::faults {
namespace {

// What a drive is known by is its identity, not what else is on it.
TEST_F(DriveTest, EmptiedDriveWithItsIdentity_GetsSnapshots) {
  add_drive();
  start();
  const std::string identity = content(identity_on(drive(1)));
  fs::remove_all(drive(1));
  fs::create_directories(drive(1) / ".spoor");
  std::ofstream(identity_on(drive(1))) << identity;
  EXPECT_TRUE(save());
  expect_saved(1);
}

TEST_F(DriveTest, AcceptedDirectory_ReplacesTheDrive) {
  add_drive();
  start();
  const std::string before = instance();
  const auto old_id = drive_state(1)["id"];
  fs::rename(drive(1), aside());
  fs::create_directory(drive(1));
  EXPECT_TRUE(mark("bucket/a"));
  EXPECT_EQ(accept(drive(1)), 200U);
  expect_saved(1);
  EXPECT_NE(drive_state(1)["id"], old_id);

  kill_hard();
  start();
  EXPECT_EQ(instance(), before) << daemon_->log();
  expect_saved(1);
  fs::remove_all(drive(1));
  fs::rename(aside(), drive(1));
  EXPECT_TRUE(save());
  expect_refused(1, "carries another drive's identity");
}

// The journal goes on without any drive; it is only freed when there is one again. That comes back while the
// daemon runs, or after it was killed.
TEST_F(DriveTest, OnlyDriveMissing_MarksAreKeptByTheJournal) {
  SPOOR_RANDOM(random);
  Load load(random);
  start();
  const std::string before = instance();
  for (const bool is_killed : {false, true}) {
    load.start(port());
    ASSERT_TRUE(load.wait_for_acknowledged(50));
    fs::rename(drive(), aside());
    EXPECT_FALSE(save());
    EXPECT_EQ(request("GET", "/readyz").status, 503U);
    ASSERT_TRUE(load.wait_for_acknowledged(50));
    if (is_killed) {
      kill_hard();
      load.stop();
    }
    fs::rename(aside(), drive());
    if (is_killed) {
      start();
      EXPECT_EQ(instance(), before) << daemon_->log();
      expect_kept(load);
    } else {
      wait_until_ready();
      expect_kill_loses_nothing(load);
    }
  }
  EXPECT_EQ(load.refused(), 0U);
}

// What the snapshot held is not known then, so everything counts as changed.
TEST_F(DriveTest, OnlyDriveMissing_StartIsANewInstance) {
  start();
  const std::string before = instance();
  EXPECT_TRUE(mark("bucket/a"));
  EXPECT_TRUE(save());
  kill_hard();
  fs::rename(drive(), aside());
  fs::create_directory(drive());
  start();
  EXPECT_NE(instance(), before);
  EXPECT_EQ(get("/v1/dirty?path=never/marked")["dirty"], true);
  EXPECT_TRUE(fs::is_empty(drive()));
}

}  // namespace
}  // namespace spoor::faults
