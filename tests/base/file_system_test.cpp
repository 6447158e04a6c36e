// On the real file system: what only a kernel can answer.

#include "base/file_system.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "tests/support/temp_directory.h"
#include "tests/support/umask.h"

namespace spoor::base {
namespace {

namespace fs = std::filesystem;

void write_plainly(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string read_plainly(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class FileSystemTest : public ::testing::Test {
 protected:
  support::TempDirectory directory_;
  const fs::path file_ = directory_ / "file";
  PosixFileSystem files_;
};

TEST_F(FileSystemTest, ListDirectory_IsSortedByName) {
  write_plainly(directory_ / "b", "");
  write_plainly(directory_ / ".a", "");
  fs::create_directory(directory_ / "sub");
  EXPECT_EQ(files_.list_directory(directory_.path()).value(), (std::vector<std::string>{".a", "b", "sub"}));
  EXPECT_EQ(files_.list_directory(directory_ / "none").error().code, std::errc::no_such_file_or_directory);
  EXPECT_EQ(files_.list_directory(directory_ / "b").error().code, std::errc::not_a_directory);
}

TEST_F(FileSystemTest, ReadIfThere_ReturnsNothingOnlyIfFileIsMissing) {
  EXPECT_FALSE(read_if_there(files_, file_, 100).value());
  write_plainly(file_, "12345");
  EXPECT_EQ(read_if_there(files_, file_, 100).value(), "12345");
  EXPECT_EQ(read_if_there(files_, file_, 4).error().code, std::errc::file_too_large);
}

TEST_F(FileSystemTest, Read_ReturnsContentAsWritten) {
  write_plainly(file_, std::string("a\0b\n", 4));
  EXPECT_EQ(files_.read(file_, 100).value(), std::string("a\0b\n", 4));
}

TEST_F(FileSystemTest, ReadEmptyFile_ReturnsEmpty) {
  write_plainly(file_, "");
  EXPECT_EQ(files_.read(file_, 0).value(), "");
}

TEST_F(FileSystemTest, ReadMissingFile_ReturnsNoSuchFileWithItsPath) {
  const auto read = files_.read(file_, 100);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, std::errc::no_such_file_or_directory);
  EXPECT_NE(read.error().message.find(file_.native()), std::string::npos) << read.error().message;
}

TEST_F(FileSystemTest, ReadBeyondSizeLimit_IsTooLarge) {
  write_plainly(file_, "12345");
  EXPECT_EQ(files_.read(file_, 5).value(), "12345");
  const auto read = files_.read(file_, 4);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, std::errc::file_too_large);
}

TEST_F(FileSystemTest, ReadTerabyteFile_IsRefusedBeforeReading) {
  write_plainly(file_, "");
  ASSERT_EQ(::truncate(file_.c_str(), off_t{1} << 40), 0);  // sparse: it takes no space
  const auto read = files_.read(file_, 1'000'000);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, std::errc::file_too_large);
}

TEST_F(FileSystemTest, ReadDirectory_IsRefused) {
  const auto read = files_.read(directory_.path(), 100);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, std::errc::is_a_directory);
}

TEST_F(FileSystemTest, ReadFifo_IsRefusedWithoutHanging) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_FALSE(files_.read(file_, 100));
}

TEST_F(FileSystemTest, Space_HasTheTypeOfTheFileSystem) {
  const auto space = files_.space("/dev/shm").value();
  EXPECT_EQ(space.type, "tmpfs");
  EXPECT_GT(space.bytes, 0U);
  EXPECT_LE(space.used_bytes + space.free_bytes, space.bytes);
  EXPECT_EQ(files_.space("/proc").value().type, "0x9fa0") << "it has no name here";
}

TEST_F(FileSystemTest, ReadDevice_IsRefused) { EXPECT_FALSE(files_.read("/dev/zero", 100)); }

TEST_F(FileSystemTest, CreateAppendClose_WritesFile) {
  auto file = files_.create(file_).value();
  ASSERT_TRUE(file->append("one "));
  ASSERT_TRUE(file->append("two"));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->close());
  EXPECT_EQ(read_plainly(file_), "one two");
}

TEST_F(FileSystemTest, WriteAt_OverwritesAndLengthensFile) {
  auto file = files_.create(file_).value();
  ASSERT_TRUE(file->write_at(0, "12345678"));
  ASSERT_TRUE(file->write_at(2, "ab"));
  ASSERT_TRUE(file->write_at(7, "cd"));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(read_plainly(file_), "12ab567cd");
}

TEST_F(FileSystemTest, CreateExistingFile_TruncatesIt) {
  write_plainly(file_, "old and long");
  ASSERT_TRUE(files_.create(file_).value()->append("new"));
  EXPECT_EQ(read_plainly(file_), "new");
}

TEST_F(FileSystemTest, CreatedFile_IsNotAccessibleToOthers) {
  ASSERT_TRUE(files_.create(file_));
  struct stat status{};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07U, 0U);
}

TEST_F(FileSystemTest, FileAndDirectoryModes_AreIndependentOfUmask) {
  for (const mode_t mask : {0000U, 0022U, 0077U}) {
    const support::Umask umask(mask);
    const fs::path folder = directory_ / std::to_string(mask);
    ASSERT_TRUE(files_.create_directory(folder));
    ASSERT_TRUE(files_.create(folder / "file"));
    EXPECT_EQ(fs::status(folder).permissions(), fs::perms(0750));
    EXPECT_EQ(fs::status(folder / "file").permissions(), fs::perms(0640));
    ASSERT_TRUE(FileLock::try_acquire(folder / "lock"));
    EXPECT_EQ(fs::status(folder / "lock").permissions(), fs::perms(0640));
  }
}

TEST_F(FileSystemTest, FileThatRootCreates_BelongsToTheOwnerOfItsFolder) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  constexpr uid_t other = 12'345;
  const auto owner_of = [](const fs::path& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? status.st_uid : ~uid_t{0};
  };
  write_plainly(directory_ / "old", "");  // another one may have a reason to own it
  ASSERT_EQ(::chown((directory_ / ".").c_str(), other, other), 0);
  ASSERT_TRUE(FileLock::try_acquire(directory_ / "lock"));
  ASSERT_TRUE(FileLock::try_acquire(directory_ / "old"));
  ASSERT_TRUE(replace_file(files_, file_, "new"));
  EXPECT_EQ(owner_of(directory_ / "lock"), other);
  EXPECT_EQ(owner_of(file_), other);
  EXPECT_EQ(owner_of(directory_ / "old"), 0U);
}

TEST_F(FileSystemTest, DirectoryBelowSetgidDirectory_KeepsSetgid) {
  fs::permissions(directory_ / ".", fs::perms::set_gid, fs::perm_options::add);
  ASSERT_TRUE(files_.create_directory(directory_ / "folder"));
  EXPECT_EQ(fs::status(directory_ / "folder").permissions(), fs::perms(0750) | fs::perms::set_gid);
}

TEST_F(FileSystemTest, CreateAtSymlink_IsRefused) {
  // Whoever can write to the directory could otherwise have any file of the daemon's overwritten.
  const fs::path victim = directory_ / "victim";
  write_plainly(victim, "precious");
  fs::create_symlink(victim, file_);
  EXPECT_FALSE(files_.create(file_));
  EXPECT_EQ(read_plainly(victim), "precious");
}

TEST_F(FileSystemTest, CreateAtFifoWithReader_IsRefused) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  const int reader = ::open(file_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  EXPECT_FALSE(files_.create(file_));
  ::close(reader);
}

TEST_F(FileSystemTest, CreateAtFifoWithoutReader_IsRefusedWithoutHanging) {
  // A FIFO without a reader blocks a plain open for ever: this test would hang.
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_FALSE(files_.create(file_));
}

TEST_F(FileSystemTest, CreateInMissingDirectory_ReturnsNoSuchFile) {
  const auto created = files_.create(directory_ / "missing" / "file");
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, std::errc::no_such_file_or_directory);
}

TEST_F(FileSystemTest, CreateAtDevice_IsRefused) { EXPECT_FALSE(files_.create("/dev/null")); }

TEST_F(FileSystemTest, Rename_ReplacesTarget) {
  write_plainly(file_, "new");
  write_plainly(directory_ / "target", "old");
  ASSERT_TRUE(files_.rename(file_, directory_ / "target"));
  EXPECT_EQ(read_plainly(directory_ / "target"), "new");
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(FileSystemTest, Remove_DeletesFileAndReportsMissingOne) {
  write_plainly(file_, "x");
  EXPECT_TRUE(files_.remove(file_));
  EXPECT_FALSE(fs::exists(file_));
  EXPECT_EQ(files_.remove(file_).error().code, std::errc::no_such_file_or_directory);
}

TEST_F(FileSystemTest, RemoveSymlink_KeepsItsTarget) {
  const fs::path target = directory_ / "target";
  write_plainly(target, "kept");
  fs::create_symlink(target, file_);
  EXPECT_TRUE(files_.remove(file_));
  EXPECT_EQ(read_plainly(target), "kept");
}

TEST_F(FileSystemTest, CreateExistingDirectory_Succeeds) {
  EXPECT_TRUE(files_.create_directory(directory_ / "new"));
  EXPECT_TRUE(files_.create_directory(directory_ / "new"));
}

TEST_F(FileSystemTest, CreateDirectory_DoesNotCreateParents) {
  EXPECT_FALSE(files_.create_directory(directory_ / "missing" / "new"));
  EXPECT_FALSE(fs::exists(directory_ / "missing"));
}

TEST_F(FileSystemTest, CreateDirectoryAtFile_ReturnsFileExists) {
  write_plainly(file_, "x");
  EXPECT_EQ(files_.create_directory(file_).error().code, std::errc::file_exists);
}

TEST_F(FileSystemTest, RemoveDirectory_RemovesOnlyEmptyDirectory) {
  const fs::path directory = directory_ / "new";
  fs::create_directory(directory);
  write_plainly(directory / "file", "x");
  EXPECT_EQ(files_.remove_directory(directory).error().code, std::errc::directory_not_empty);
  EXPECT_EQ(files_.remove_directory(directory / "file").error().code, std::errc::not_a_directory);
  EXPECT_TRUE(files_.remove(directory / "file"));
  EXPECT_TRUE(files_.remove_directory(directory));
  EXPECT_FALSE(fs::exists(directory));
}

TEST_F(FileSystemTest, SyncDirectory_RefusesFileAndMissingPath) {
  write_plainly(file_, "x");
  EXPECT_TRUE(files_.sync_directory(directory_.path()));
  EXPECT_FALSE(files_.sync_directory(file_));
  EXPECT_FALSE(files_.sync_directory(directory_ / "missing"));
}

TEST_F(FileSystemTest, ReplaceFile_WritesContentAndLeavesNoTemporaryFile) {
  ASSERT_TRUE(replace_file(files_, file_, "one"));
  ASSERT_TRUE(replace_file(files_, file_, "two"));
  EXPECT_EQ(read_plainly(file_), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()), 1);
}

TEST_F(FileSystemTest, ReplaceFileAtSymlink_KeepsItsTarget) {
  const fs::path target = directory_ / "target";
  write_plainly(target, "kept");
  fs::create_symlink(target, file_);
  ASSERT_TRUE(replace_file(files_, file_, "new"));
  EXPECT_EQ(read_plainly(target), "kept");
  EXPECT_EQ(read_plainly(file_), "new");
}

TEST_F(FileSystemTest, ReplaceOpenFile_ReaderSeesOldContent) {
  // ancestor 15: in-place writing shows readers a short file.
  write_plainly(file_, "the old content");
  std::ifstream reader(file_, std::ios::binary);
  ASSERT_TRUE(replace_file(files_, file_, "the new content"));
  const std::string seen{std::istreambuf_iterator<char>(reader), {}};
  EXPECT_EQ(seen, "the old content");
}

TEST_F(FileSystemTest, ReplaceFileAtDirectory_FailsAndKeepsDirectory) {
  fs::create_directory(file_);
  EXPECT_FALSE(replace_file(files_, file_, "new"));
  EXPECT_TRUE(fs::is_directory(file_));
  EXPECT_FALSE(fs::exists(file_.native() + ".tmp"));
}

}  // namespace
}  // namespace spoor::base
