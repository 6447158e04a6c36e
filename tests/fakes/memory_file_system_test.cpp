// The fake must be as strict as a disk, otherwise tests on it prove nothing: it is compared with the real
// file system.

#include "tests/fakes/memory_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

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

TEST_F(MemoryFileSystemTest, Contents_MatchRealFileSystem) {
  const support::TempDirectory real_directory;
  base::PosixFileSystem real;
  const auto contents = [](base::FileSystem& files, const std::filesystem::path& top) {
    std::vector<std::string> found;
    write(files, top / "f", "unsynced", false);
    found.push_back(files.read(top / "f", 100).value());
    auto file = files.create(top / "f").value();
    found.push_back(files.read(top / "f", 100).value());
    EXPECT_TRUE(file->append("1234"));
    EXPECT_TRUE(file->write_at(2, "abcd"));
    EXPECT_TRUE(file->append("5"));
    EXPECT_TRUE(file->write_at(9, "behind a hole"));
    EXPECT_TRUE(file->close());
    EXPECT_FALSE(file->append("x")) << "it is closed";
    found.push_back(files.read(top / "f", 100).value());
    for (const char* name : {"b", "a"}) EXPECT_TRUE(files.create_directory(top / name));
    write(files, top / "a" / "x", "", true);
    for (std::string& name : files.list_directory(top).value()) found.push_back(std::move(name));
    return found;
  };
  EXPECT_EQ(contents(files_, "/d"), contents(real, real_directory.path()));
  EXPECT_THAT(files_.names_in("/d"), ElementsAre("a", "b", "f"));
}

// --- power failures ---

// What is left after a power cut: of /d/f, which held "old" durably, and of /d/new, which did not exist.
TEST_F(MemoryFileSystemTest, Crash_LosesWhatIsNotSynced) {
  using Files = MemoryFileSystem;
  const auto overwrite = [](Files& files) {
    auto file = files.create("/d/f").value();
    ASSERT_TRUE(file->append("safe....."));
    ASSERT_TRUE(file->sync());
    ASSERT_TRUE(file->write_at(4, "1234"));
  };
  const auto write_new = [](bool sync, bool sync_directory) {
    return [=](Files& files) {
      write(files, "/d/new", "new", sync);
      if (sync_directory) {
        ASSERT_TRUE(files.sync_directory("/d"));
      }
    };
  };
  const auto rename_unsynced = [](Files& files) {
    write(files, "/d/new", "new", false);
    ASSERT_TRUE(files.rename("/d/new", "/d/f"));
  };
  struct Case {
    const char* what;
    std::function<void(Files&)> act;
    Fate fate;
    std::optional<std::string> old_file;
    std::optional<std::string> new_file;
  };
  const std::optional<std::string> none;
  const Case cases[] = {
      {"all synced", write_new(true, true), Fate::lost, "old", "new"},
      {"the directory not synced", write_new(true, false), Fate::lost, "old", none},
      {"the content not synced", write_new(false, true), Fate::lost, "old", ""},
      {"nothing synced, kept", write_new(false, false), Fate::kept, "old", "new"},
      {"other directories synced",
       [&](Files& files) {
         write_new(true, false)(files);
         ASSERT_TRUE(files.sync_directory("/"));
       },
       Fate::lost, "old", none},
      {"an append, torn",
       [](Files& files) {
         auto file = files.create("/d/new").value();
         ASSERT_TRUE(file->append("safe"));
         ASSERT_TRUE(file->sync());
         ASSERT_TRUE(file->append("1234"));
         ASSERT_TRUE(files.sync_directory("/d"));
       },
       Fate::torn, "old", std::string("safe12\0\0", 8)},
      {"an overwrite, lost", overwrite, Fate::lost, "safe.....", none},
      {"an overwrite, torn", overwrite, Fate::torn, "safe12...", none},
      {"an overwrite, reordered", overwrite, Fate::reordered, "safe..34.", none},
      {"an overwrite, kept", overwrite, Fate::kept, "safe1234.", none},
      // Zeros that lengthen a file are not told from those that were there.
      {"zeros behind the bytes, reordered",
       [](Files& files) {
         auto file = files.create("/d/new").value();
         ASSERT_TRUE(files.sync_directory("/d"));
         ASSERT_TRUE(file->write_at(0, std::string("1234\0\0\0\0", 8)));
       },
       Fate::reordered, "old", std::string("\0\00034\0\0\0\0", 8)},
      {"a truncation", [](Files& files) { write(files, "/d/f", "new", false); }, Fate::lost, "old", none},
      {"a rename",
       [](Files& files) {
         files.put("/d/new", "new");
         ASSERT_TRUE(files.rename("/d/new", "/d/f"));
       },
       Fate::lost, "old", "new"},
      {"a rename of unsynced content, kept", rename_unsynced, Fate::kept, "new", none},
      {"a removal", [](Files& files) { ASSERT_TRUE(files.remove("/d/f")); }, Fate::lost, "old", none},
      {"a file open in the crash",
       [](Files& files) {
         auto file = files.create("/d/new").value();
         files.crash(Fate::kept);
         EXPECT_FALSE(file->append("from another life"));
       },
       Fate::kept, "old", ""},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    Files files;
    files.put("/d/f", "old");
    each.act(files);
    files.crash(each.fate);
    EXPECT_EQ(files.content("/d/f"), each.old_file);
    EXPECT_EQ(files.content("/d/new"), each.new_file);
  }
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

// The result of a rename without a sync before it on many file systems.
TEST_F(MemoryFileSystemTest, RenameOfUnsyncedContent_CanLoseContentInCrash) {
  files_.put("/d/to", "old");
  write(files_, "/d/from", "new", false);
  ASSERT_TRUE(files_.rename("/d/from", "/d/to"));
  files_.crash([](const std::string& what) { return what.starts_with("content") ? Fate::lost : Fate::kept; });
  EXPECT_EQ(files_.content("/d/to"), "");
}

TEST_F(MemoryFileSystemTest, UnsyncedDirectory_IsLostOrComesBackInCrash) {
  ASSERT_TRUE(files_.create_directory("/d/new"));
  write(files_, "/d/new/f", "content", true);
  ASSERT_TRUE(files_.sync_directory("/d/new"));
  files_.crash();
  EXPECT_THAT(files_.names_in("/d"), IsEmpty());
  EXPECT_FALSE(files_.exists("/d/new/f"));
  files_.make_directory("/d/below");
  ASSERT_TRUE(files_.remove_directory("/d/below"));
  EXPECT_FALSE(files_.exists("/d/below"));
  files_.crash();
  EXPECT_TRUE(files_.exists("/d/below"));
}

TEST_F(MemoryFileSystemTest, OmittedSync_SucceedsAndKeepsNothing) {
  files_.is_sync_omitted = [](const std::filesystem::path& path) { return path.extension() == ".no"; };
  for (const char* name : {"/d/f.no", "/d/f.yes"}) write(files_, name, "content", true);
  ASSERT_TRUE(files_.sync_directory("/d"));
  files_.crash();
  EXPECT_EQ(files_.content("/d/f.no"), "");
  EXPECT_EQ(files_.content("/d/f.yes"), "content");
}

// --- failures ---

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

TEST_F(MemoryFileSystemTest, FullDrive_StillReadsRenamesAndRemovesAndWritesPartially) {
  files_.put("/d/f", "content");
  auto file = files_.create("/d/open").value();
  files_.fill("/d");
  EXPECT_EQ(files_.create("/d/new").error().code, std::errc::no_space_on_device);
  EXPECT_TRUE(files_.read("/d/f", 100));
  EXPECT_TRUE(files_.rename("/d/f", "/d/g"));
  EXPECT_TRUE(files_.remove("/d/g"));
  EXPECT_FALSE(file->append("123456"));
  EXPECT_EQ(files_.content("/d/open"), "123");
}

TEST_F(MemoryFileSystemTest, ShortenCall_ReturnsHalfOnce) {
  files_.put("/d/f", "123456");
  files_.shorten_call(2);
  EXPECT_EQ(files_.read("/d/f", 100).value(), "123456");
  EXPECT_EQ(files_.read("/d/f", 100).value(), "123");
  EXPECT_EQ(files_.read("/d/f", 100).value(), "123456");
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
