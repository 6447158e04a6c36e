#include "tracker/storage/drive_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <latch>
#include <thread>
#include <utility>

#include "tests/fakes/memory_file_system.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::filesystem::path one = "/mnt/one";
const std::filesystem::path two = "/mnt/\xff two";
const std::vector<std::filesystem::path> drives{one, two};

class DriveRegistryTest : public ::testing::Test {
 protected:
  DriveRegistryTest() {
    files_.make_directory("/data");
    for (const auto& drive : drives) files_.make_directory(drive);
  }

  struct LoadedRegistry : DriveRegistry {
    explicit LoadedRegistry(base::FileSystem& files) : DriveRegistry(files, "/data") {
      EXPECT_TRUE(load(drives));
    }
  };
  LoadedRegistry loaded() { return LoadedRegistry(files_); }

  static std::filesystem::path identity(const std::filesystem::path& drive) {
    return spoor_directory(drive) / "drive.json";
  }

  void expect_refused(const DriveRegistry& registry, const std::filesystem::path& drive, const char* why) {
    const auto identity = registry.check(drive);
    ASSERT_FALSE(identity);
    EXPECT_EQ(identity.error().code, Errc::drive_refused);
    EXPECT_THAT(identity.error().message, AllOf(HasSubstr(why), HasSubstr("spoor drives accept")));
  }

  fakes::MemoryFileSystem files_;
};

TEST_F(DriveRegistryTest, NewDrive_IsFreshAndKnownOnceAdmitted) {
  LoadedRegistry registry = loaded();
  for (const auto& drive : drives) {
    EXPECT_EQ(registry.check(drive).value(), DriveIdentity::fresh);
    ASSERT_TRUE(registry.admit(drive));
    EXPECT_EQ(registry.check(drive).value(), DriveIdentity::known);
    EXPECT_EQ(registry.id_of(drive).size(), 32U);
  }
  EXPECT_NE(registry.id_of(one), registry.id_of(two));
  files_.crash();
  const LoadedRegistry next = loaded();
  for (const auto& drive : drives) {
    EXPECT_EQ(next.check(drive).value(), DriveIdentity::known);
    EXPECT_EQ(next.id_of(drive), registry.id_of(drive));
  }
}

TEST_F(DriveRegistryTest, OverlappingDrive_IsNotAdmittedOrWritten) {
  const auto find_overlap = [](const std::filesystem::path& drive) {
    return drive == two ? std::string("it is inside /mnt/one") : std::string();
  };
  DriveRegistry registry(files_, "/data", find_overlap);
  ASSERT_TRUE(registry.load(drives));
  EXPECT_TRUE(registry.admit(one));
  const auto admitted = registry.admit(two);
  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().code, Errc::drive_refused);
  EXPECT_THAT(admitted.error().message, HasSubstr("inside /mnt/one"));
  EXPECT_FALSE(files_.exists(identity(two)));
}

TEST_F(DriveRegistryTest, AdmittedDriveWithoutIdentity_IsRefused) {
  LoadedRegistry registry = loaded();
  ASSERT_TRUE(registry.admit(one));
  ASSERT_TRUE(files_.remove(identity(one)));
  expect_refused(registry, one, "carries no identity");
  expect_refused(loaded(), one, "carries no identity");
}

TEST_F(DriveRegistryTest, AnotherDrivesIdentity_IsRefusedUntilAdmitted) {
  LoadedRegistry registry = loaded();
  ASSERT_TRUE(registry.admit(one));
  files_.put(identity(one), R"({"id":"00112233445566778899aabbccddeeff"})");
  expect_refused(registry, one,
                 "another drive's identity (00112233445566778899aabbccddeeff, of no drive of this node)");
  ASSERT_TRUE(registry.admit(one));
  EXPECT_EQ(registry.check(one).value(), DriveIdentity::known);
  EXPECT_EQ(registry.id_of(one), "00112233445566778899aabbccddeeff") << "its own word is kept";
}

TEST_F(DriveRegistryTest, UnreadableDrive_IsRefusedNotFresh) {
  LoadedRegistry registry = loaded();
  ASSERT_TRUE(registry.admit(one));
  files_.fail_below(one, EIO);
  expect_refused(registry, one, "Input/output error");
  EXPECT_FALSE(registry.admit(one));
  files_.heal(one);
  EXPECT_EQ(registry.check(one).value(), DriveIdentity::known);
}

TEST_F(DriveRegistryTest, CorruptOrDuplicateIdentity_IsRefusedAndNotReplaced) {
  LoadedRegistry registry = loaded();
  ASSERT_TRUE(registry.admit(one));
  files_.put(identity(two), files_.content(identity(one)).value());
  EXPECT_THAT(registry.admit(two).error().message, HasSubstr("same identity"));
  for (const char* text : {"", "{}", R"({"id":"short"})", R"({"id":7})", "\xff\xff"}) {
    files_.put(identity(one), text);
    expect_refused(registry, one, "is corrupt");
    EXPECT_FALSE(registry.admit(one));
    EXPECT_EQ(files_.content(identity(one)), text);
  }
}

// Another thread admits a copy of the drive meanwhile.
TEST_F(DriveRegistryTest, DuplicateIdentityAdmittedMeanwhile_IsRefused) {
  LoadedRegistry registry = loaded();
  const std::filesystem::path replaced = "/mnt/replaced";
  files_.make_directory(replaced);
  ASSERT_TRUE(registry.admit(replaced));
  files_.put(identity(one), files_.content(identity(replaced)).value());
  files_.put(identity(two), files_.content(identity(replaced)).value());
  ASSERT_TRUE(files_.remove(identity(replaced)));
  bool is_first = true;
  files_.before_read = [&](const std::filesystem::path& file) {
    if (file != identity(replaced) || !std::exchange(is_first, false)) return;
    EXPECT_TRUE(registry.admit(one));
  };
  const auto admitted = registry.admit(two);
  EXPECT_FALSE(is_first);
  ASSERT_FALSE(admitted);
  EXPECT_THAT(admitted.error().message, HasSubstr("same identity as /mnt/one"));
}

TEST_F(DriveRegistryTest, DriveHangs_AnotherIsAdmittedAndChecked) {
  LoadedRegistry registry = loaded();
  ASSERT_TRUE(registry.admit(one));
  std::latch begun(1);
  std::latch released(1);
  files_.before_read = [&](const std::filesystem::path& file) {
    if (file != identity(one)) return;
    begun.count_down();
    released.wait();
  };
  {
    const std::jthread hanging([&] { EXPECT_EQ(registry.check(one).value(), DriveIdentity::known); });
    begun.wait();
    EXPECT_TRUE(registry.admit(two));
    EXPECT_EQ(registry.check(two).value(), DriveIdentity::known);
    EXPECT_NE(registry.id_of(one), "");
    released.count_down();
  }
}

TEST_F(DriveRegistryTest, SwappedDrives_AreRefusedUntilAdmitted) {
  LoadedRegistry registry = loaded();
  for (const auto& drive : drives) ASSERT_TRUE(registry.admit(drive));
  const std::string first = files_.content(identity(one)).value();
  files_.put(identity(one), files_.content(identity(two)).value());
  files_.put(identity(two), first);
  expect_refused(registry, one, "another drive's identity (that of /mnt/\\xff two)");
  expect_refused(registry, two, "another drive's identity (that of /mnt/one)");
  for (const auto& drive : drives) EXPECT_TRUE(registry.admit(drive));
  for (const auto& drive : drives) EXPECT_EQ(registry.check(drive).value(), DriveIdentity::known);
}

TEST_F(DriveRegistryTest, CorruptRegistry_AdmitsOnlyDrivesWithIdentity) {
  {
    LoadedRegistry registry = loaded();
    ASSERT_TRUE(registry.admit(one));
  }
  for (const char* text : {"", "{", "[]", R"({"drives":[]})"}) {
    files_.put("/data/drives.json", text);
    DriveRegistry registry(files_, "/data");
    EXPECT_FALSE(registry.load(drives)) << text;
    EXPECT_EQ(registry.check(one).value(), DriveIdentity::fresh);
    expect_refused(registry, two, "carries no identity");
    ASSERT_TRUE(registry.admit(one));
    expect_refused(loaded(), two, "carries no identity");
  }
}

TEST_F(DriveRegistryTest, RegistryWriteFails_DriveIsNotAdmitted) {
  LoadedRegistry registry = loaded();
  files_.fill("/data");
  EXPECT_FALSE(registry.admit(one));
  EXPECT_EQ(registry.check(one).value(), DriveIdentity::fresh);
  files_.heal("/data");
  const auto count = files_.clone();
  count->reset_calls();
  EXPECT_TRUE(LoadedRegistry(*count).admit(one));
  for (std::size_t call = 2; call <= count->calls(); ++call) {  // the first loads the registry
    const auto files = files_.clone();
    LoadedRegistry failing(*files);
    files->fail_call(call - 1, EIO);
    EXPECT_FALSE(failing.admit(one)) << call;
  }
  EXPECT_TRUE(registry.admit(one));
}

}  // namespace
}  // namespace spoor::tracker
