#include "scanner/walk/directory_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "scanner/errors.h"
#include "tests/fakes/manual_clock.h"
#include "tests/support/temp_directory.h"

namespace spoor::scanner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DirectoryReaderTest : public ::testing::Test {
 protected:
  // Whatever a test makes was made long ago.
  DirectoryReaderTest() { clock_.set_wall(base::WallTime(std::chrono::seconds(7'258'118'400))); }

  void file(const std::string& name, std::size_t bytes) const {
    std::ofstream(temp_ / name, std::ios::binary) << std::string(bytes, 'x');
  }
  void directory(const std::string& name) const { std::filesystem::create_directory(temp_ / name); }

  Listing read(std::string_view path = "", const tracker::NamespaceRules& rules = {},
               const ListingParts& parts = {}) const {
    auto handle = reader_.open_drive(temp_.path());
    EXPECT_TRUE(handle) << handle.error().message;
    auto listing = reader_.read(*handle, path, rules, parts, {});
    EXPECT_TRUE(listing) << listing.error().message;
    return listing ? std::move(*listing) : Listing();
  }

  std::vector<std::string> subdirectories() const {
    const Listing listing = read();
    std::vector<std::string> names;
    for (std::size_t number = 0; number < listing.subdirectories.size(); ++number) {
      names.emplace_back(listing.subdirectories[number].name);
    }
    return names;
  }

  struct stat status(const std::string& name) const {
    struct stat found{};
    EXPECT_EQ(::lstat((temp_ / name).c_str(), &found), 0);
    return found;
  }

  support::TempDirectory temp_;
  fakes::ManualClock clock_;
  PosixDirectoryReader reader_{clock_};
};

TEST_F(DirectoryReaderTest, EmptyDirectory_HasNoEntries) {
  const Listing listing = read();
  EXPECT_EQ(listing.own.files, 0U);
  EXPECT_EQ(listing.own.bytes, 0U);
  EXPECT_TRUE(listing.subdirectories.empty());
  EXPECT_FALSE(listing.incomplete);
}

TEST_F(DirectoryReaderTest, TimesOfProc_DoNotChangeWithItsEntries) {
  const auto proc = reader_.open_drive("/proc");
  ASSERT_TRUE(proc);
  EXPECT_FALSE(reader_.changes_times_with_entries(*proc));
}

TEST_F(DirectoryReaderTest, Files_AreCountedAndSummed) {
  file("a", 100);
  file("b", 5000);
  const Listing listing = read();
  EXPECT_EQ(listing.own.files, 2U);
  EXPECT_EQ(listing.own.bytes, 5100U);
  EXPECT_EQ(listing.own.allocated,
            static_cast<std::uint64_t>(status("a").st_blocks + status("b").st_blocks) * 512);
}

TEST_F(DirectoryReaderTest, Subdirectories_AreSortedByNameWithInodes) {
  directory("b");
  directory("a");
  directory("\xff");
  EXPECT_THAT(subdirectories(), ElementsAre("a", "b", "\xff"));
  EXPECT_EQ(read().subdirectories[0].inode, status("a").st_ino);
}

TEST_F(DirectoryReaderTest, SymbolicLinks_AreCountedButNotFollowed) {
  directory("real");
  std::filesystem::create_directory_symlink(temp_ / "real", temp_ / "to_directory");
  std::filesystem::create_symlink("/nonexistent", temp_ / "to_nothing");
  const Listing listing = read();
  EXPECT_EQ(listing.own.files, 2U);
  EXPECT_EQ(listing.own.bytes, 0U);
  EXPECT_THAT(subdirectories(), ElementsAre("real"));
}

TEST_F(DirectoryReaderTest, SymbolicLinkInPlaceOfDirectory_IsNotOpened) {
  directory("real");
  std::filesystem::create_directory_symlink(temp_ / "real", temp_ / "link");
  const auto root = reader_.open_drive(temp_.path());
  const auto opened = reader_.open(*root, "link", "link");
  ASSERT_FALSE(opened);
  EXPECT_TRUE(opened.error().code == std::errc::not_a_directory ||
              opened.error().code == std::errc::too_many_symbolic_link_levels);
}

TEST_F(DirectoryReaderTest, DriveIsSymbolicLink_IsOpened) {
  directory("real");
  std::filesystem::create_directory_symlink(temp_ / "real", temp_ / "link");
  const auto opened = reader_.open_drive(temp_ / "link");
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->inode, status("real").st_ino);
}

TEST_F(DirectoryReaderTest, Fifo_IsCountedWithoutBlocking) {
  ASSERT_EQ(::mkfifo((temp_ / "fifo").c_str(), 0600), 0);
  const Listing listing = read();
  EXPECT_EQ(listing.own.files, 1U);
  EXPECT_EQ(listing.own.bytes, 0U);
}

TEST_F(DirectoryReaderTest, SparseFile_HasApparentAndAllocatedSize) {
  file("sparse", 0);
  std::filesystem::resize_file(temp_ / "sparse", 1'000'000'000);
  const Listing listing = read();
  EXPECT_EQ(listing.own.bytes, 1'000'000'000U);
  EXPECT_EQ(listing.own.allocated, static_cast<std::uint64_t>(status("sparse").st_blocks) * 512);
  EXPECT_LT(listing.own.allocated, 1'000'000U);
}

TEST_F(DirectoryReaderTest, HardLinksInOneDirectory_CountSizeOnce) {
  file("a", 10);
  std::filesystem::create_hard_link(temp_ / "a", temp_ / "b");
  file("c", 100);
  const Listing listing = read();
  EXPECT_EQ(listing.own.files, 3U);
  EXPECT_EQ(listing.own.bytes, 110U);
  const auto blocks = [this](const char* name) { return static_cast<std::uint64_t>(status(name).st_blocks); };
  EXPECT_EQ(listing.own.allocated, (blocks("a") + blocks("c")) * 512);
  EXPECT_EQ(listing.linked, (LinkedFiles{{status("a").st_ino, 10, blocks("a") * 512}}));
}

TEST_F(DirectoryReaderTest, HardLinkElsewhere_IsListedAsLinked) {
  file("a", 10);
  directory("below");
  std::filesystem::create_hard_link(temp_ / "a", temp_ / "below/b");
  const Listing listing = read();
  EXPECT_EQ(listing.own.bytes, 10U);
  ASSERT_EQ(listing.linked.size(), 1U);
  EXPECT_EQ(listing.linked[0].inode, status("a").st_ino);
}

TEST_F(DirectoryReaderTest, NamesWithArbitraryBytes_AreKept) {
  const std::string longest(255, 'n');
  for (const std::string& name :
       {std::string("new\nline"), std::string("\xc3\x28"), longest, std::string(" ")}) {
    directory(name);
  }
  EXPECT_THAT(subdirectories(), ElementsAre(" ", "new\nline", longest, "\xc3\x28"));
}

TEST_F(DirectoryReaderTest, IgnoredNames_AreNeitherCountedNorListed) {
  directory(".spoor");
  directory(".minio.sys");
  directory("kept");
  file("a.tmp", 5);
  file("b", 5);
  tracker::NamespaceRules::Options options;
  options.exclude = {"*.tmp"};
  const Listing listing = read("", tracker::NamespaceRules(options));
  EXPECT_EQ(listing.own.files, 1U);
  ASSERT_EQ(listing.subdirectories.size(), 1U);
  EXPECT_EQ(listing.subdirectories[0].name, "kept");
}

TEST_F(DirectoryReaderTest, ReservedNameBelowTop_IsListed) {
  directory(".spoor");
  EXPECT_EQ(read("bucket").subdirectories.size(), 1U);
}

TEST_F(DirectoryReaderTest, NewestMtime_IsOfDirectoryOrItsFiles) {
  file("a", 1);
  const std::int64_t future = 4'000'000'000;
  const timespec times[2] = {{future, 5}, {future, 5}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (temp_ / "a").c_str(), times, 0), 0);
  EXPECT_EQ(read().own.mtime_ns, future * 1'000'000'000 + 5);
  std::filesystem::remove(temp_ / "a");
  const auto own = status("");
  EXPECT_EQ(read().own.mtime_ns, own.st_mtim.tv_sec * 1'000'000'000 + own.st_mtim.tv_nsec);
}

TEST_F(DirectoryReaderTest, Signature_ChangesWithEveryEntryChange) {
  file("a", 10);
  file("b", 10);
  directory("d");
  const std::uint64_t before = read().signature;
  EXPECT_EQ(read().signature, before);

  file("a", 11);
  const std::uint64_t grown = read().signature;
  EXPECT_NE(grown, before);
  std::filesystem::rename(temp_ / "a", temp_ / "c");
  const std::uint64_t renamed = read().signature;
  EXPECT_NE(renamed, grown);
  std::filesystem::rename(temp_ / "d", temp_ / "e");
  const std::uint64_t directory_renamed = read().signature;
  EXPECT_NE(directory_renamed, renamed);
  std::filesystem::remove(temp_ / "c");
  EXPECT_NE(read().signature, directory_renamed);
}

TEST_F(DirectoryReaderTest, OlderFileMtimeChanges_SignatureDiffers) {
  file("older", 10);
  file("newer", 10);
  const timespec future[2] = {{4'000'000'000, 0}, {4'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (temp_ / "newer").c_str(), future, 0), 0);
  const std::uint64_t before = read().signature;
  const timespec past[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (temp_ / "older").c_str(), past, 0), 0);
  EXPECT_NE(read().signature, before) << "size and newest time are the same, and yet it changed";
}

TEST_F(DirectoryReaderTest, ChangeInsideSubdirectory_KeepsSignature) {
  directory("d");
  const std::uint64_t before = read().signature;
  file("d/x", 10);
  EXPECT_EQ(read().signature, before);
}

TEST_F(DirectoryReaderTest, MoreEntriesThanOneSystemCall_AreAllRead) {
  for (int number = 0; number < 3000; ++number) file("file-with-a-longer-name-" + std::to_string(number), 1);
  EXPECT_EQ(read().own.files, 3000U);
  EXPECT_EQ(read().own.bytes, 3000U);
}

TEST_F(DirectoryReaderTest, RemovedOpenDirectory_ReadReturnsNotFound) {
  directory("d");
  const auto root = reader_.open_drive(temp_.path());
  const auto opened = reader_.open(*root, "d", "d");
  ASSERT_TRUE(opened);
  std::filesystem::remove(temp_ / "d");
  const auto listing = reader_.read(*opened, "d", {}, {}, {});
  ASSERT_FALSE(listing);
  EXPECT_EQ(listing.error().code, std::errc::no_such_file_or_directory);
}

TEST_F(DirectoryReaderTest, FileNamesWanted_AreListedWithSignatures) {
  directory("d");
  file("b", 1);
  file("a", 2);
  std::filesystem::create_symlink("nowhere", temp_ / "link");
  EXPECT_FALSE(read().files);
  const auto before = read("", {}, {.files = true}).files;
  ASSERT_TRUE(before);
  ASSERT_EQ(before->size(), 3U);
  EXPECT_EQ((*before)[0].name, "a");
  EXPECT_EQ((*before)[1].name, "b");
  EXPECT_EQ((*before)[2].name, "link");
  file("b", 3);
  const auto after = read("", {}, {.files = true}).files;
  EXPECT_EQ((*after)[0].signature, (*before)[0].signature);
  EXPECT_NE((*after)[1].signature, (*before)[1].signature);
}

// What the kernel has to tell a directory from another one of its inode number, by the first that it answers.
std::uint32_t identity_by_the_kernel(const std::filesystem::path& directory) {
  struct statx status{};
  EXPECT_EQ(::statx(AT_FDCWD, directory.c_str(), 0, STATX_BASIC_STATS | STATX_BTIME, &status), 0);
  const auto ns = [](const struct statx_timestamp& time) {
    return time.tv_sec * 1'000'000'000 + time.tv_nsec;
  };
  if ((status.stx_mask & STATX_BTIME) != 0) return identity_of_birth(ns(status.stx_btime));
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY);
  long generation = 0;
  const bool answers = ::ioctl(descriptor, FS_IOC_GETVERSION, &generation) == 0;
  ::close(descriptor);
  if (answers && static_cast<std::uint32_t>(generation) != 0) {
    return identity_of_generation(static_cast<std::uint32_t>(generation));
  }
  return identity_of_ctime(ns(status.stx_ctime));
}

TEST_F(DirectoryReaderTest, DirectoryIdentity_MatchesKernel) {
  directory("one");
  directory("two");
  const auto root = reader_.open_drive(temp_.path());
  for (const char* name : {"one", "two"}) {
    const std::uint32_t expected = identity_by_the_kernel(temp_ / name);
    EXPECT_EQ(reader_.open(*root, name, name)->birth, expected);
    EXPECT_EQ(reader_.open_drive(temp_ / name)->birth, expected);
  }
}

TEST(DirectoryIdentityTest, ProofsAndCtimes_AreDistinguished) {
  for (std::int64_t number = 0; number < 1000; ++number) {
    EXPECT_TRUE(is_proof(identity_of_birth(number)));
    EXPECT_TRUE(is_proof(identity_of_generation(static_cast<std::uint32_t>(number))));
    EXPECT_FALSE(is_proof(identity_of_ctime(number)));
    EXPECT_NE(identity_of_ctime(number), no_identity);
  }
  EXPECT_FALSE(is_proof(no_identity));
}

TEST(TimestampStepTest, RecentTimestamp_IsWithinStep) {
  constexpr std::int64_t second = 1'000'000'000;
  constexpr std::int64_t millisecond = 1'000'000;
  const std::int64_t fine = 1'000'000 * second + 1;
  EXPECT_TRUE(is_within_step(fine, fine));
  EXPECT_TRUE(is_within_step(fine, fine + 9 * millisecond));
  EXPECT_FALSE(is_within_step(fine, fine + 10 * millisecond));
  EXPECT_TRUE(is_within_step(fine, fine - 1000 * second)) << "a clock that was set back";
  const std::int64_t coarse = 1'000'000 * second;
  EXPECT_TRUE(is_within_step(coarse, coarse + 2 * second + 9 * millisecond)) << "FAT";
  EXPECT_FALSE(is_within_step(coarse, coarse + 2 * second + 10 * millisecond));
}

TEST_F(DirectoryReaderTest, SignatureOfRecentChange_IsRacy) {
  fakes::ManualClock clock;
  const PosixDirectoryReader reader(clock);
  file("a", 1);
  const auto racy_at = [&](std::chrono::nanoseconds later) {
    const auto changed = status("a").st_ctim;
    clock.set_wall(base::WallTime(std::chrono::seconds(changed.tv_sec) +
                                  std::chrono::nanoseconds(changed.tv_nsec) + later));
    return reader.read(*reader.open_drive(temp_.path()), "", {}, {.files = true}, {});
  };
  const auto racy = racy_at(std::chrono::nanoseconds(0));
  const auto applied = racy_at(std::chrono::hours(1));
  const auto later = racy_at(std::chrono::hours(2));
  EXPECT_TRUE(racy->is_racy);
  EXPECT_FALSE(applied->is_racy);
  EXPECT_EQ(racy->signature, applied->signature) << "what an audit compares";
  EXPECT_NE((*racy->files)[0].signature, (*applied->files)[0].signature);
  EXPECT_EQ((*later->files)[0].signature, (*applied->files)[0].signature);
}

TEST_F(DirectoryReaderTest, OneRacyFileOfSeveral_IsEnough) {
  const std::vector<std::string> names{"a", "b", "c"};
  for (const std::string& name : names) file(name, 1);
  const timespec changed = status("c").st_ctim;
  fakes::ManualClock clock;
  clock.set_wall(base::WallTime(std::chrono::hours(1) + std::chrono::seconds(changed.tv_sec) +
                                std::chrono::nanoseconds(changed.tv_nsec)));
  const PosixDirectoryReader reader(clock);
  // Whichever of them is listed first or last.
  for (const std::string& name : names) {
    const auto set_mtime = [&](time_t seconds) {
      const timespec times[2] = {changed, {seconds, changed.tv_nsec}};
      ASSERT_EQ(::utimensat(AT_FDCWD, (temp_ / name).c_str(), times, 0), 0);
    };
    set_mtime(changed.tv_sec + 3600);
    EXPECT_TRUE(reader.read(*reader.open_drive(temp_.path()), "", {}, {}, {})->is_racy) << name;
    set_mtime(changed.tv_sec);
    EXPECT_FALSE(reader.read(*reader.open_drive(temp_.path()), "", {}, {}, {})->is_racy) << name;
  }
}

// An mtime is whatever a program sets it to.
TEST_F(DirectoryReaderTest, FileMtimeInFuture_IsNotRacy) {
  file("a", 1);
  const timespec future[2] = {{8'000'000'000, 0}, {8'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (temp_ / "a").c_str(), future, 0), 0);
  EXPECT_FALSE(read().is_racy);
}

TEST_F(DirectoryReaderTest, File_IsReadBelowDescriptor) {
  const auto root = reader_.open_drive(temp_.path());
  EXPECT_EQ(*reader_.read_file(*root, ".spoor/drive.json", 100), std::nullopt);
  directory(".spoor");
  file(".spoor/drive.json", 7);
  EXPECT_EQ(*reader_.read_file(*root, ".spoor/drive.json", 100), "xxxxxxx");
  EXPECT_EQ(*reader_.read_file(*root, ".spoor/drive.json", 3), "xxx");
}

TEST_F(DirectoryReaderTest, StopRequested_ListingIsInterrupted) {
  std::stop_source stop;
  stop.request_stop();
  const auto root = reader_.open_drive(temp_.path());
  const auto listing = reader_.read(*root, "", {}, {}, stop.get_token());
  ASSERT_FALSE(listing);
  EXPECT_EQ(listing.error().code, Errc::interrupted);
}

TEST_F(DirectoryReaderTest, OpenDriveOnFileOrMissingPath_IsAnError) {
  file("a", 1);
  EXPECT_EQ(reader_.open_drive(temp_ / "a").error().code, std::errc::not_a_directory);
  EXPECT_EQ(reader_.open_drive(temp_ / "b").error().code, std::errc::no_such_file_or_directory);
}

}  // namespace
}  // namespace spoor::scanner
