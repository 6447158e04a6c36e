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

TEST_F(FileSystemTest, Read_ReturnsContentWithinTheLimit) {
  EXPECT_FALSE(read_if_there(files_, file_, 100).value());
  const auto missing = files_.read(file_, 100);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, std::errc::no_such_file_or_directory);
  EXPECT_NE(missing.error().message.find(file_.native()), std::string::npos) << missing.error().message;
  write_plainly(file_, "");
  EXPECT_EQ(files_.read(file_, 0).value(), "");
  write_plainly(file_, std::string("a\0b\n", 4));
  EXPECT_EQ(files_.read(file_, 4).value(), std::string("a\0b\n", 4));
  EXPECT_EQ(read_if_there(files_, file_, 4).value(), std::string("a\0b\n", 4));
  EXPECT_EQ(files_.read(file_, 3).error().code, std::errc::file_too_large);
  EXPECT_EQ(read_if_there(files_, file_, 3).error().code, std::errc::file_too_large);
  ASSERT_EQ(::truncate(file_.c_str(), off_t{1} << 40), 0);  // a terabyte, sparse: refused before reading
  EXPECT_EQ(files_.read(file_, 1'000'000).error().code, std::errc::file_too_large);
}

// A FIFO without a reader or writer blocks a plain open for ever.
TEST_F(FileSystemTest, FifosDevicesAndLinks_AreRefusedWithoutHanging) {
  EXPECT_EQ(files_.read(directory_.path(), 100).error().code, std::errc::is_a_directory);
  EXPECT_FALSE(files_.read("/dev/zero", 100));
  EXPECT_FALSE(files_.create("/dev/null"));
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_FALSE(files_.read(file_, 100));
  EXPECT_FALSE(files_.create(file_));
  const int reader = ::open(file_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  EXPECT_FALSE(files_.create(file_));
  ::close(reader);
  // Whoever can write to the directory could otherwise have any file of the daemon's overwritten.
  const fs::path link = directory_ / "link";
  write_plainly(directory_ / "victim", "precious");
  fs::create_symlink(directory_ / "victim", link);
  EXPECT_FALSE(files_.create(link));
  EXPECT_TRUE(files_.remove(link));
  fs::create_symlink(directory_ / "victim", link);
  EXPECT_TRUE(replace_file(files_, link, "new"));
  EXPECT_EQ(read_plainly(link), "new");
  EXPECT_EQ(read_plainly(directory_ / "victim"), "precious");
}

TEST_F(FileSystemTest, Space_HasTheTypeOfTheFileSystem) {
  const auto space = files_.space("/dev/shm").value();
  EXPECT_EQ(space.type, "tmpfs");
  EXPECT_GT(space.bytes, 0U);
  EXPECT_LE(space.used_bytes + space.free_bytes, space.bytes);
  EXPECT_EQ(files_.space("/proc").value().type, "0x9fa0") << "it has no name here";
}

TEST_F(FileSystemTest, AppendAndWriteAt_OverwriteAndLengthenATruncatedFile) {
  write_plainly(file_, "old and longer than what is new");
  auto file = files_.create(file_).value();
  ASSERT_TRUE(file->append("1234"));
  ASSERT_TRUE(file->append("5678"));
  ASSERT_TRUE(file->write_at(2, "ab"));
  ASSERT_TRUE(file->write_at(7, "cd"));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->close());
  EXPECT_EQ(read_plainly(file_), "12ab567cd");
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

TEST_F(FileSystemTest, DirectoriesAndTheirEntries_AreMadeRenamedListedAndRemoved) {
  const fs::path directory = directory_ / "new";
  EXPECT_FALSE(files_.create_directory(directory / "below")) << "no parents";
  EXPECT_EQ(files_.create(directory / "file").error().code, std::errc::no_such_file_or_directory);
  EXPECT_TRUE(files_.create_directory(directory));
  EXPECT_TRUE(files_.create_directory(directory)) << "it is there";
  write_plainly(directory / "b", "new");
  write_plainly(directory / "a", "old");
  write_plainly(directory / ".c", "");
  EXPECT_EQ(files_.list_directory(directory).value(), (std::vector<std::string>{".c", "a", "b"}));
  EXPECT_EQ(files_.list_directory(directory / "none").error().code, std::errc::no_such_file_or_directory);
  EXPECT_EQ(files_.list_directory(directory / "b").error().code, std::errc::not_a_directory);
  EXPECT_EQ(files_.create_directory(directory / "b").error().code, std::errc::file_exists);
  EXPECT_TRUE(files_.sync_directory(directory));
  EXPECT_FALSE(files_.sync_directory(directory / "b"));
  EXPECT_FALSE(files_.sync_directory(directory / "none"));
  EXPECT_TRUE(files_.rename(directory / "b", directory / "a"));
  EXPECT_EQ(read_plainly(directory / "a"), "new");
  EXPECT_FALSE(fs::exists(directory / "b"));
  EXPECT_EQ(files_.remove_directory(directory).error().code, std::errc::directory_not_empty);
  EXPECT_EQ(files_.remove_directory(directory / "a").error().code, std::errc::not_a_directory);
  for (const char* name : {"a", ".c"}) EXPECT_TRUE(files_.remove(directory / name));
  EXPECT_EQ(files_.remove(directory / "a").error().code, std::errc::no_such_file_or_directory);
  EXPECT_TRUE(files_.remove_directory(directory));
  EXPECT_FALSE(fs::exists(directory));
}

TEST_F(FileSystemTest, ReplaceFile_WritesContentAndLeavesNoTemporaryFile) {
  ASSERT_TRUE(replace_file(files_, file_, "one"));
  ASSERT_TRUE(replace_file(files_, file_, "two"));
  EXPECT_EQ(read_plainly(file_), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()), 1);
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
