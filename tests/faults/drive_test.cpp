// Drives that are removed, come back, are swapped or accepted while the daemon runs: nothing is written
// where the drive only used to be.
#include "tests/faults/drive_fixture.h"

namespace spoor::faults {
namespace {

TEST_F(DriveTest, RemovedDrive_IsNotCreatedAgain) {
  add_drive();
  start();
  fs::remove_all(drive(1));
  EXPECT_TRUE(mark("bucket/a"));
  EXPECT_TRUE(save()) << "the other drive is fine";
  expect_refused(1, "carries no identity");
  EXPECT_EQ(request("GET", "/readyz").status, 200U);
  EXPECT_FALSE(fs::exists(drive(1)));
}

TEST_F(DriveTest, DriveComesBack_GetsSnapshotsAgain) {
  add_drive();
  start();
  fs::rename(drive(1), aside());
  EXPECT_TRUE(mark("bucket/a"));
  EXPECT_TRUE(save());
  EXPECT_EQ(drive_state(1)["ok"], false);
  fs::rename(aside(), drive(1));
  EXPECT_TRUE(save());
  expect_saved(1);
}

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

TEST_F(DriveTest, EmptyDirectoryInPlaceOfADrive_IsNotWrittenTo) {
  add_drive();
  start();
  fs::rename(drive(1), aside());
  fs::create_directory(drive(1));
  EXPECT_TRUE(mark("bucket/a"));
  EXPECT_TRUE(save());
  expect_refused(1, "carries no identity");
  EXPECT_TRUE(fs::is_empty(drive(1)));

  kill_hard();
  start();
  expect_refused(1, "carries no identity");
  EXPECT_TRUE(fs::is_empty(drive(1))) << "a restart forgets no drive";
}

TEST_F(DriveTest, AnotherDriveInPlaceOfADrive_IsNotWrittenTo) {
  add_drive();
  start();
  fs::rename(drive(1), aside());
  fs::create_directories(drive(1) / ".spoor");
  std::ofstream(identity_on(drive(1))) << R"({"id":"00112233445566778899aabbccddeeff"})";
  EXPECT_TRUE(save());
  expect_refused(1, "carries another drive's identity");
  EXPECT_FALSE(fs::exists(snapshot_on(drive(1))));
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

TEST_F(DriveTest, AcceptDrive_NotConfigured_ReturnsNotFound) {
  start();
  fs::create_directory(directory_ / "elsewhere");
  EXPECT_EQ(accept(directory_ / "elsewhere"), 404U);
  EXPECT_TRUE(fs::is_empty(directory_ / "elsewhere"));
}

// The journal goes on without any drive; it is only freed when there is one again.
TEST_F(DriveTest, OnlyDriveMissing_MarksAreKeptByTheJournal) {
  SPOOR_RANDOM(random);
  Load load(random);
  start();
  load.start(port());
  ASSERT_TRUE(load.wait_for_acknowledged(50));
  fs::rename(drive(), aside());
  EXPECT_FALSE(save());
  EXPECT_EQ(request("GET", "/readyz").status, 503U);
  ASSERT_TRUE(load.wait_for_acknowledged(50));
  fs::rename(aside(), drive());
  wait_until_ready();
  EXPECT_EQ(load.refused(), 0U);
  expect_kill_loses_nothing(load);
}

TEST_F(DriveTest, OnlyDriveMissing_KillLosesNoMarkOnceItIsBack) {
  SPOOR_RANDOM(random);
  Load load(random);
  start();
  const std::string before = instance();
  load.start(port());
  ASSERT_TRUE(load.wait_for_acknowledged(50));
  fs::rename(drive(), aside());
  EXPECT_FALSE(save());
  ASSERT_TRUE(load.wait_for_acknowledged(50));
  kill_hard();
  load.stop();
  fs::rename(aside(), drive());
  start();
  EXPECT_EQ(instance(), before) << daemon_->log();
  expect_kept(load);
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
