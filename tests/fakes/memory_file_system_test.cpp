// The fake must be as strict as a disk, otherwise tests on it prove nothing: it is compared with the real
// file system.

#include "tests/fakes/memory_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/temp_directory.h"

namespace spoor::fakes {
namespace {

using Fate = MemoryFileSystem::Fate;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

void write(base::FileSystem& files, const std::filesystem::path& path, std::string_view bytes, bool sync) {
  auto file = files.create(path).value();
  ASSERT_TRUE(file->append(bytes));
  if (sync) {
    ASSERT_TRUE(file->sync());
  }
  ASSERT_TRUE(file->close());
}

class MemoryFileSystemTest : public ::testing::Test {
 protected:
  MemoryFileSystemTest() { files_.make_directory("/d"); }

  MemoryFileSystem files_;
};

// --- the same results as the kernel's ---

// Runs the same calls on the fake and on the real file system, and compares error codes.
TEST_F(MemoryFileSystemTest, ErrorCodes_MatchRealFileSystem) {
  const support::TempDirectory real_directory;
  base::PosixFileSystem real;
  const auto codes = [](base::FileSystem& files, const std::filesystem::path& top) {
    write(files, top / "file", "12345", true);
    EXPECT_TRUE(files.create_directory(top / "dir"));
    std::vector<std::pair<std::string, int>> errors;
    const auto note = [&](const char* what, const auto& result) {
      errors.emplace_back(what, result ? 0 : result.error().code.value());
    };
    note("read", files.read(top / "file", 5));
    note("read too large", files.read(top / "file", 4));
    note("read missing", files.read(top / "missing", 5));
    note("read below missing", files.read(top / "missing" / "x", 5));
    note("read directory", files.read(top / "dir", 5));
    note("create", files.create(top / "dir" / "file"));
    note("create again", files.create(top / "dir" / "file"));
    note("create below missing", files.create(top / "missing" / "x"));
    note("create below file", files.create(top / "file" / "x"));
    note("create at directory", files.create(top / "dir"));
    note("rename missing", files.rename(top / "missing", top / "x"));
    note("rename onto directory", files.rename(top / "file", top / "dir"));
    note("rename onto itself", files.rename(top / "file", top / "file"));
    note("rename below missing", files.rename(top / "file", top / "missing" / "x"));
    note("rename", files.rename(top / "file", top / "dir" / "file"));
    note("renamed", files.read(top / "file", 5));
    note("remove missing", files.remove(top / "missing"));
    note("remove directory", files.remove(top / "dir"));
    note("make directory again", files.create_directory(top / "dir"));
    note("make directory at file", files.create_directory(top / "dir" / "file"));
    note("make directory below missing", files.create_directory(top / "missing" / "x"));
    note("sync missing directory", files.sync_directory(top / "missing"));
    note("sync file as directory", files.sync_directory(top / "dir" / "file"));
    note("remove", files.remove(top / "dir" / "file"));
    note("removed", files.read(top / "dir" / "file", 5));
    write(files, top / "dir" / "file", "12345", true);
    note("remove directory missing", files.remove_directory(top / "missing"));
    note("remove directory at file", files.remove_directory(top / "dir" / "file"));
    note("remove directory of a file", files.remove_directory(top / "dir"));
    EXPECT_TRUE(files.remove(top / "dir" / "file"));
    note("remove empty directory", files.remove_directory(top / "dir"));
    note("directory removed", files.list_directory(top / "dir"));
    return errors;
  };
  EXPECT_EQ(codes(files_, "/d"), codes(real, real_directory.path()));
}

TEST_F(MemoryFileSystemTest, UnsyncedWrite_IsReadBack) {
  write(files_, "/d/f", "content", false);
  EXPECT_EQ(files_.read("/d/f", 100).value(), "content");
}

TEST_F(MemoryFileSystemTest, CreateExistingFile_TruncatesIt) {
  files_.put("/d/f", "old");
  ASSERT_TRUE(files_.create("/d/f"));
  EXPECT_EQ(files_.content("/d/f"), "");
}

TEST_F(MemoryFileSystemTest, AppendToClosedFile_Fails) {
  auto file = files_.create("/d/f").value();
  ASSERT_TRUE(file->close());
  EXPECT_FALSE(file->append("x"));
}

TEST_F(MemoryFileSystemTest, WriteAt_MatchesRealFileSystem) {
  const support::TempDirectory real_directory;
  base::PosixFileSystem real;
  const auto written = [](base::FileSystem& files, const std::filesystem::path& path) {
    auto file = files.create(path).value();
    EXPECT_TRUE(file->append("1234"));
    EXPECT_TRUE(file->write_at(2, "abcd"));
    EXPECT_TRUE(file->append("5"));
    EXPECT_TRUE(file->write_at(9, "behind a hole"));
    return files.read(path, 100).value();
  };
  EXPECT_EQ(written(files_, "/d/f"), written(real, real_directory / "f"));
}

TEST_F(MemoryFileSystemTest, NamesIn_ListsOneDirectoryOnly) {
  files_.put("/d/b", "");
  files_.put("/d/a/x", "");
  EXPECT_THAT(files_.names_in("/d"), ElementsAre("a", "b"));
}

// --- power failures ---

TEST_F(MemoryFileSystemTest, FileAndDirectorySynced_SurvivesCrash) {
  write(files_, "/d/f", "content", true);
  ASSERT_TRUE(files_.sync_directory("/d"));
  EXPECT_EQ(files_.crash(), 0U);
  EXPECT_EQ(files_.content("/d/f"), "content");
}

TEST_F(MemoryFileSystemTest, SyncedFileInUnsyncedDirectory_IsLostInCrash) {
  write(files_, "/d/f", "content", true);
  files_.crash();
  EXPECT_FALSE(files_.exists("/d/f"));
}

TEST_F(MemoryFileSystemTest, UnsyncedContentInSyncedDirectory_IsLostInCrash) {
  write(files_, "/d/f", "content", false);
  ASSERT_TRUE(files_.sync_directory("/d"));
  files_.crash();
  EXPECT_EQ(files_.content("/d/f"), "");
}

TEST_F(MemoryFileSystemTest, UnsyncedAppend_CanBeTornInCrash) {
  auto file = files_.create("/d/f").value();
  ASSERT_TRUE(file->append("safe"));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->append("1234"));
  ASSERT_TRUE(files_.sync_directory("/d"));
  files_.crash(Fate::torn);
  EXPECT_EQ(files_.content("/d/f"), std::string("safe12\0\0", 8));
}

TEST_F(MemoryFileSystemTest, UnsyncedOverwrite_CanBeTornInCrash) {
  const auto crashed = [&](Fate fate) {
    auto file = files_.create("/d/f").value();
    EXPECT_TRUE(file->append("safe....."));
    EXPECT_TRUE(file->sync());
    EXPECT_TRUE(files_.sync_directory("/d"));
    EXPECT_TRUE(file->write_at(4, "1234"));
    files_.crash(fate);
    return files_.content("/d/f");
  };
  EXPECT_EQ(crashed(Fate::lost), "safe.....");
  EXPECT_EQ(crashed(Fate::torn), "safe12...");
  EXPECT_EQ(crashed(Fate::reordered), "safe..34.");
  EXPECT_EQ(crashed(Fate::kept), "safe1234.");
}

// Zeros that lengthen a file are not told from those that were there.
TEST_F(MemoryFileSystemTest, UnsyncedWriteWithZerosBehind_IsTornWithinItsBytes) {
  auto file = files_.create("/d/f").value();
  ASSERT_TRUE(files_.sync_directory("/d"));
  ASSERT_TRUE(file->write_at(0, std::string("1234\0\0\0\0", 8)));
  files_.crash(Fate::reordered);
  EXPECT_EQ(files_.content("/d/f"), std::string("\0\00034\0\0\0\0", 8));
}

TEST_F(MemoryFileSystemTest, UnsyncedFile_CanSurviveCrash) {
  write(files_, "/d/f", "content", false);
  files_.crash(Fate::kept);
  EXPECT_EQ(files_.content("/d/f"), "content");
}

TEST_F(MemoryFileSystemTest, CrashChooser_IsCalledForEachUnsyncedChange) {
  write(files_, "/d/f", "content", false);
  std::vector<std::string> asked;
  files_.crash([&](const std::string& what) {
    asked.push_back(what);
    return Fate::kept;
  });
  EXPECT_THAT(asked, ElementsAre("creation of /d/f", "content of /d/f"));
}

TEST_F(MemoryFileSystemTest, UnsyncedTruncation_CanBeUndoneInCrash) {
  files_.put("/d/f", "old");
  write(files_, "/d/f", "new", false);
  files_.crash(Fate::lost);
  EXPECT_EQ(files_.content("/d/f"), "old");
}

TEST_F(MemoryFileSystemTest, UnsyncedRename_IsUndoneInCrash) {
  files_.put("/d/from", "new");
  files_.put("/d/to", "old");
  ASSERT_TRUE(files_.rename("/d/from", "/d/to"));
  files_.crash();
  EXPECT_EQ(files_.content("/d/from"), "new");
  EXPECT_EQ(files_.content("/d/to"), "old");
}

TEST_F(MemoryFileSystemTest, RenameOfUnsyncedContent_CanLoseContentInCrash) {
  // The result of a rename without a sync before it on many file systems.
  files_.put("/d/to", "old");
  write(files_, "/d/from", "new", false);
  ASSERT_TRUE(files_.rename("/d/from", "/d/to"));
  files_.crash([](const std::string& what) { return what.starts_with("content") ? Fate::lost : Fate::kept; });
  EXPECT_EQ(files_.content("/d/to"), "");
}

TEST_F(MemoryFileSystemTest, UnsyncedRemove_IsUndoneInCrash) {
  files_.put("/d/f", "content");
  ASSERT_TRUE(files_.remove("/d/f"));
  files_.crash();
  EXPECT_EQ(files_.content("/d/f"), "content");
}

TEST_F(MemoryFileSystemTest, UnsyncedDirectory_LosesItsSyncedContentInCrash) {
  ASSERT_TRUE(files_.create_directory("/d/new"));
  write(files_, "/d/new/f", "content", true);
  ASSERT_TRUE(files_.sync_directory("/d/new"));
  files_.crash();
  EXPECT_THAT(files_.names_in("/d"), IsEmpty());
  EXPECT_FALSE(files_.exists("/d/new/f"));
}

TEST_F(MemoryFileSystemTest, UnsyncedRemoveDirectory_IsUndoneInCrash) {
  files_.make_directory("/d/below");
  ASSERT_TRUE(files_.remove_directory("/d/below"));
  EXPECT_FALSE(files_.exists("/d/below"));
  files_.crash();
  EXPECT_TRUE(files_.exists("/d/below"));
}

TEST_F(MemoryFileSystemTest, SyncDirectory_LeavesOtherDirectoriesUnsynced) {
  files_.make_directory("/e");
  write(files_, "/e/f", "content", true);
  ASSERT_TRUE(files_.sync_directory("/d"));
  ASSERT_TRUE(files_.sync_directory("/"));
  files_.crash();
  EXPECT_FALSE(files_.exists("/e/f"));
}

TEST_F(MemoryFileSystemTest, FileOpenDuringCrash_IsClosed) {
  auto file = files_.create("/d/f").value();
  files_.crash(Fate::kept);
  EXPECT_FALSE(file->append("from another life"));
  EXPECT_EQ(files_.content("/d/f"), "");
}

// --- failures ---

TEST_F(MemoryFileSystemTest, FailCall_FailsOneCallWithoutEffect) {
  files_.fail_call(2, EROFS);
  EXPECT_TRUE(files_.create_directory("/d/1"));
  EXPECT_EQ(files_.create_directory("/d/2").error().code, std::errc::read_only_file_system);
  EXPECT_TRUE(files_.create_directory("/d/3"));
  EXPECT_THAT(files_.names_in("/d"), ElementsAre("1", "3"));
}

TEST_F(MemoryFileSystemTest, Calls_CountOpenFileOperations) {
  files_.reset_calls();
  write(files_, "/d/f", "content", true);
  EXPECT_EQ(files_.calls(), 4U);  // create, append, sync, close
}

TEST_F(MemoryFileSystemTest, StopAtCall_FailsEveryCallUntilCrash) {
  files_.stop_at_call(2);
  EXPECT_TRUE(files_.create_directory("/d/1"));
  EXPECT_FALSE(files_.create_directory("/d/2"));
  EXPECT_FALSE(files_.create_directory("/d/3"));
  files_.crash(Fate::kept);
  EXPECT_THAT(files_.names_in("/d"), ElementsAre("1"));
  EXPECT_TRUE(files_.create_directory("/d/4"));
}

TEST_F(MemoryFileSystemTest, FailBelow_FailsOnlyPathsBelowTheDrive) {
  files_.make_directory("/d/x");
  files_.make_directory("/d/xy");
  files_.fail_below("/d/x", EIO);
  EXPECT_EQ(files_.create("/d/x/f").error().code, std::errc::io_error);
  EXPECT_TRUE(files_.create("/d/xy/f"));
  files_.heal("/d/x");
  EXPECT_TRUE(files_.create("/d/x/f"));
}

TEST_F(MemoryFileSystemTest, FullDrive_StillReadsRenamesAndRemoves) {
  files_.put("/d/f", "content");
  files_.fill("/d");
  EXPECT_EQ(files_.create("/d/new").error().code, std::errc::no_space_on_device);
  EXPECT_TRUE(files_.read("/d/f", 100));
  EXPECT_TRUE(files_.rename("/d/f", "/d/g"));
  EXPECT_TRUE(files_.remove("/d/g"));
}

TEST_F(MemoryFileSystemTest, AppendOnFullDrive_WritesPartially) {
  auto file = files_.create("/d/f").value();
  files_.fill("/d");
  EXPECT_FALSE(file->append("123456"));
  EXPECT_EQ(files_.content("/d/f"), "123");
}

TEST_F(MemoryFileSystemTest, ShortenCall_ReturnsHalfOnce) {
  files_.put("/d/f", "123456");
  files_.shorten_call(2);
  EXPECT_EQ(files_.read("/d/f", 100).value(), "123456");
  EXPECT_EQ(files_.read("/d/f", 100).value(), "123");
  EXPECT_EQ(files_.read("/d/f", 100).value(), "123456");
}

TEST_F(MemoryFileSystemTest, ListDirectory_IsSortedByName) {
  files_.put("/d/b", "");
  files_.put("/d/a", "");
  files_.put("/d/sub/c", "");
  EXPECT_EQ(files_.list_directory("/d").value(), (std::vector<std::string>{"a", "b", "sub"}));
  EXPECT_EQ(files_.list_directory("/none").error().code, std::errc::no_such_file_or_directory);
  EXPECT_EQ(files_.list_directory("/d/a").error().code, std::errc::not_a_directory);
  files_.fail_call(1, EIO);
  EXPECT_FALSE(files_.list_directory("/d"));
}

TEST_F(MemoryFileSystemTest, Clone_CopiesUnsyncedStateAndIsIndependent) {
  files_.put("/d/f", "synced");
  auto open = files_.create("/d/f").value();
  ASSERT_TRUE(open->append("new"));
  ASSERT_TRUE(files_.rename("/d/f", "/d/g"));
  const auto clone = files_.clone();
  ASSERT_TRUE(open->append(" more"));
  EXPECT_EQ(clone->content("/d/g"), "new");
  EXPECT_EQ(clone->crash(Fate::kept), 2U) << "the rename and the content";
  EXPECT_EQ(clone->content("/d/g"), "new");
  EXPECT_EQ(files_.clone()->crash(Fate::lost), 2U);
  EXPECT_EQ(files_.content("/d/g"), "new more");
}

}  // namespace
}  // namespace spoor::fakes
