#include "tracker/paths/drive_paths.h"

#include <gtest/gtest.h>

#include "tracker/paths/path.h"

namespace spoor::tracker {
namespace {

std::string refusal(const std::string& raw) {
  static const DrivePaths paths({"/mnt/disk1", "/mnt/disk 2/", "/"});
  return paths.refusal(raw, normalise_path(raw).value());
}

TEST(DrivePathsTest, PathOnDrive_IsRefusedWithRelativePathHint) {
  EXPECT_EQ(refusal("/mnt/disk1/photos/x"),
            "'/mnt/disk1/photos/x' is on the drive /mnt/disk1; give the path below it: 'photos/x'");
  EXPECT_EQ(refusal("//mnt/./disk1//photos"),
            "'//mnt/./disk1//photos' is on the drive /mnt/disk1; give the path below it: 'photos'");
  EXPECT_EQ(refusal("/mnt/disk 2"), "'/mnt/disk 2' is on the drive /mnt/disk 2; give the path below it");
}

TEST(DrivePathsTest, PathOutsideDrives_IsAccepted) {
  for (const char* raw :
       {"mnt/disk1/photos", "/mnt/disk10/x", "/mnt", "/photos/mnt/disk1", "./mnt/disk1/x"}) {
    EXPECT_EQ(refusal(raw), "") << raw;
  }
  EXPECT_EQ(DrivePaths().refusal("/mnt/disk1", "mnt/disk1"), "");
}

TEST(DrivePathsTest, AbsolutePath_IsMappedBelowItsDriveOrRefused) {
  const DrivePaths paths({"/mnt/disk1", "/mnt/disk 2/"});
  const auto below = [&](const std::string& raw) {
    const auto found = paths.below_drive(raw, normalise_path(raw).value());
    return found ? *found : found.error().message;
  };
  EXPECT_EQ(below("/mnt/disk1/photos/x"), "photos/x");
  EXPECT_EQ(below("//mnt/./disk 2//photos/"), "photos");
  EXPECT_EQ(below("/mnt/disk1"), "'/mnt/disk1' is a drive; 'spoor scan --full' reads all of it");
  for (const std::string raw : {"/mnt", "/mnt/disk10/x", "/photos/x"})
    EXPECT_EQ(below(raw), "'" + raw + "' is on none of the drives of this node");
}

TEST(DrivePathsTest, DriveBelowAnother_HasItsPaths) {
  const DrivePaths paths({"/", "/srv", "/srv/disk"});
  EXPECT_EQ(*paths.below_drive("/srv/disk/x", "srv/disk/x"), "x");
  EXPECT_EQ(*paths.below_drive("/srv/x", "srv/x"), "x");
  EXPECT_EQ(*paths.below_drive("/home/x", "home/x"), "home/x");
}

}  // namespace
}  // namespace spoor::tracker
