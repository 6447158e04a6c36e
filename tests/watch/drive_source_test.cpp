#include "watch/drive_source.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fanotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "tests/faults/mounts.h"
#include "tests/support/sanitizer.h"
#include "tests/support/temp_directory.h"

namespace spoor::watch {
namespace {

base::Descriptor open_directory(int at, const std::filesystem::path& path) {
  return base::Descriptor(::openat(at, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// The handle of a directory, as the kernel's events have it.
DirectoryHandle handle_of(int directory) {
  alignas(file_handle) std::array<char, sizeof(file_handle) + MAX_HANDLE_SZ> bytes{};
  auto* const handle = reinterpret_cast<file_handle*>(bytes.data());
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount_id = 0;
  if (::name_to_handle_at(directory, "", handle, &mount_id, AT_EMPTY_PATH) != 0) return {};
  return {bytes.data() + sizeof(handle->handle_bytes), sizeof(handle->handle_type) + handle->handle_bytes};
}

// No descriptor can be opened while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

class DriveSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(directory_ / "inner");
    handle_ = handle_of(open_directory(AT_FDCWD, directory_ / "inner").get());
    auto source = open_drive({.drive = directory_.path(), .data_dir = directory_ / "data"});
    if (!source) GTEST_SKIP() << source.error().message;
    source_ = *std::move(source);
    ASSERT_TRUE(source_->enter());
  }

  support::TempDirectory directory_;
  DirectoryHandle handle_;
  std::unique_ptr<EventSource> source_;
};

// The rest of the file system is watched, too.
TEST_F(DriveSourceTest, EachKindOfChange_IsAnEvent) {
  const auto path = [&](const char* name) { return directory_ / "inner" / name; };
  std::ofstream(path("written")) << "content";
  std::ofstream(path("removed")).close();
  std::filesystem::remove(path("removed"));
  std::ofstream(path("from")).close();
  std::filesystem::rename(path("from"), path("to"));
  std::filesystem::permissions(path("to"), std::filesystem::perms::owner_read);
  std::filesystem::create_directory(path("directory"));
  std::map<std::string, std::uint64_t> masks;
  std::map<std::string, std::string> targets;
  for (auto events = source_->read(); !events.value().empty(); events = source_->read()) {
    for (const KernelEvent& event : *events) {
      if (event.entry.directory != handle_) continue;
      masks[event.entry.name] |= event.mask;
      if (event.target) targets[event.entry.name] = event.target->name;
    }
  }
  const auto has = [&](const char* name, std::uint64_t mask) { return (masks[name] & mask) == mask; };
  EXPECT_TRUE(has("written", FAN_CREATE | FAN_MODIFY | FAN_CLOSE_WRITE));
  EXPECT_TRUE(has("removed", FAN_CREATE | FAN_DELETE));
  EXPECT_TRUE(targets["from"] == "to" || (has("from", FAN_MOVED_FROM) && has("to", FAN_MOVED_TO)));
  EXPECT_TRUE(has("to", FAN_ATTRIB));
  EXPECT_TRUE(has("directory", FAN_CREATE | FAN_ONDIR));
}

// Its file system is the same.
TEST_F(DriveSourceTest, DriveReplacedByAnotherDirectory_CannotBeEntered) {
  std::filesystem::create_directory(directory_ / "drive");
  const auto source = open_drive({.drive = directory_ / "drive", .data_dir = directory_ / "data"}).value();
  ASSERT_TRUE(source->enter());
  source->leave();
  std::filesystem::rename(directory_ / "drive", directory_ / "former");
  EXPECT_FALSE(source->enter());
  std::filesystem::create_directory(directory_ / "drive");
  const auto entered = source->enter();
  ASSERT_FALSE(entered);
  EXPECT_TRUE(entered.error().message.ends_with("was unmounted, mounted or replaced"));
}

// The tops of both have the same inode.
TEST_F(DriveSourceTest, AnotherFileSystemOverTheDrive_CannotBeEntered) {
  if (const auto why = faults::why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
  const auto inode = [](const std::filesystem::path& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_ino;
  };
  faults::MountPoint drive(directory_ / "drive");
  drive.mount_tmpfs("1m");
  const auto before = inode(drive.path());
  const auto source = open_drive({.drive = drive.path(), .data_dir = directory_ / "data"}).value();
  ASSERT_TRUE(source->enter());
  faults::MountPoint above(drive.path());
  above.mount_tmpfs("1m");
  ASSERT_EQ(inode(drive.path()), before);
  EXPECT_FALSE(source->enter());
}

TEST_F(DriveSourceTest, Handle_LeadsToThePathOfItsDirectory) {
  EXPECT_EQ(source_->resolve(handle_).value()->path, "inner");
  std::filesystem::rename(directory_ / "inner", directory_ / "renamed");
  EXPECT_EQ(source_->resolve(handle_).value()->path, "renamed");
}

TEST_F(DriveSourceTest, RemovedDirectory_IsGone) {
  std::filesystem::remove(directory_ / "inner");
  const auto found = source_->resolve(handle_);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(*found);
}

TEST_F(DriveSourceTest, DirectoryDeeperThanAnyPath_IsBelowItsNearestAncestorWithAPath) {
  constexpr int levels = 5000;
  auto at = std::make_unique<base::Descriptor>(open_directory(AT_FDCWD, directory_ / "inner"));
  for (int level = 0; level < levels; ++level) {
    ASSERT_EQ(::mkdirat(at->get(), "d", 0700), 0);
    at = std::make_unique<base::Descriptor>(open_directory(at->get(), "d"));
  }
  const auto found = source_->resolve(handle_of(at->get()));
  ASSERT_TRUE(found && *found);
  EXPECT_TRUE((*found)->is_only_ancestor);
  const std::size_t bytes =
      std::filesystem::canonical(directory_.path()).native().size() + 1 + (*found)->path.size();
  EXPECT_LT(bytes, PATH_MAX);
  EXPECT_GE(bytes + std::strlen("/d"), PATH_MAX);
  for (int level = 0; level < levels; ++level) {  // deeper than std::filesystem::remove_all() gets
    at = std::make_unique<base::Descriptor>(open_directory(at->get(), ".."));
    ASSERT_EQ(::unlinkat(at->get(), "d", AT_REMOVEDIR), 0);
  }
}

// It may have changed: what is taken for gone is marked by no event.
TEST_F(DriveSourceTest, DirectoryThatCannotBeOpened_IsAnErrorAndNotGone) {
  if (support::is_sanitized) return;  // the sanitizer itself opens pipes, to check objects
  const NoDescriptors none;
  const auto found = source_->resolve(handle_);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, std::errc::too_many_files_open);
}

}  // namespace
}  // namespace spoor::watch
