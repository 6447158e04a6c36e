// Restarts of spoor-watch with the descriptors that a service manager keeps for it, and drives that are
// unmounted: what is a gap, and what is none.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include "base/file_system.h"
#include "tests/support/listening_socket.h"
#include "tests/watch/eventually.h"
#include "tests/watch/watch_fixture.h"

namespace spoor::watch {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;
using testing::Not;

constexpr int tree_directories = 200;

class RestartTest : public WatchTest {
 protected:
  void SetUp() override { mount(FileSystem::ext4); }

  void start_with(FdStore* manager) {
    for (int number = 0; number < tree_directories; ++number) change("tree/d" + std::to_string(number));
    start(disk().path(), manager);
    settle();
  }

  // Changes a directory, which is made if it does not exist.
  void change(const std::string& directory) {
    fs::create_directories(disk().path() / directory);
    std::ofstream(disk().path() / directory / "file", std::ios::app) << directory;
  }

  // A machine changes the disk, which is unmounted, and gives it back.
  void change_elsewhere() {
    {
      faults::MountPoint elsewhere(directory_ / "elsewhere");
      disk().mount_at(elsewhere);
      std::ofstream(elsewhere.path() / "tree/d1/unseen") << "changed";
    }
    disk().mount();
  }

  // Until nothing is marked any more: the last marks may be acknowledged after a scan has begun.
  void settle() {
    EXPECT_TRUE(eventually([this] {
      expect_truth();
      return last_scan_["dirs_walked"] == 0 || HasFailure();
    })) << last_scan_;
  }

  void expect_no_gap() {
    EXPECT_THAT(drive_gaps(last_scan_), IsEmpty()) << last_scan_ << node().watch().log();
  }

  // The scan walked the whole drive for it, and the next one does not.
  void expect_gap() {
    EXPECT_THAT(drive_gaps(last_scan_), Not(IsEmpty())) << last_scan_ << node().watch().log();
    EXPECT_GT(last_scan_["dirs_walked"], tree_directories);
    settle();
    expect_no_gap();
  }
};

TEST_F(RestartTest, CleanRestart_WithoutChanges_WalksNothing) {
  start_with(&manager_);
  EXPECT_EQ(node().stop_watch(), 0) << node().watch().log();
  EXPECT_THAT(manager_.names(), Not(IsEmpty()));
  node().start_watch();
  expect_truth();
  expect_no_gap();
  EXPECT_LT(last_scan_["dirs_walked"], 10) << last_scan_;
}

TEST_F(RestartTest, CleanRestart_ChangesInBetween_AreFoundWithoutGap) {
  start_with(&manager_);
  EXPECT_EQ(node().stop_watch(), 0) << node().watch().log();
  change("tree/d1");
  change("new");
  fs::rename(disk().path() / "tree/d2", disk().path() / "renamed");
  fs::remove_all(disk().path() / "tree/d3");
  node().start_watch();
  expect_truth();
  expect_no_gap();
  EXPECT_LT(last_scan_["dirs_walked"], tree_directories / 2);
}

TEST_F(RestartTest, KillWhileIdle_IsNoGap) {
  start_with(&manager_);
  // An event of a snapshot, or of the cookie, may be in flight: then it is a gap.
  constexpr int kills_max = 20;
  int kills = 0;
  do {
    settle();
    node().kill_watch();
    change("tree/d1");
    node().start_watch();
    expect_truth();
  } while (!drive_gaps(last_scan_).empty() && ++kills < kills_max);
  expect_no_gap();
}

// The test takes the place of spoord, and does not respond.
TEST_F(RestartTest, KillWithBatchInFlight_IsAGap) {
  start_with(&manager_);
  EXPECT_EQ(node().stop_daemon(), 0) << node().daemon().log();
  const support::ListeningSocket silent(node().socket());
  change("tree/d1");
  std::string request;
  while (request.find("/v1/marks") == std::string::npos) {
    constexpr int wait_ms = 100'000;
    pollfd listening{silent.fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&listening, 1, wait_ms), 1) << node().watch().log();
    const base::Descriptor client(::accept4(silent.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    std::array<char, 4096> chunk{};
    const ssize_t size = ::recv(client.get(), chunk.data(), chunk.size(), 0);
    request = std::string(chunk.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    if (request.find("/v1/marks") != std::string::npos) node().kill_watch();
  }
  fs::remove(node().socket());
  node().start_daemon();
  node().start_watch();
  expect_truth();
  expect_gap();
}

// Without a service manager that keeps them, or after `systemctl stop`, which closes the descriptors.
TEST_F(RestartTest, StartWithoutDescriptors_IsAGapOnce) {
  for (FdStore* const manager : {static_cast<FdStore*>(nullptr), &manager_}) {
    start_with(manager);
    const std::string before = node().gap_id();
    EXPECT_EQ(node().stop_watch(), 0) << node().watch().log();
    manager_.discard();
    change("tree/d1");  // which no process sees
    node().start_watch();
    EXPECT_NE(node().gap_id(), before);
    expect_truth();
    expect_gap();
  }
}

// They wait for the scan, and are then sent together.
TEST_F(RestartTest, MoreMarksThanARequestTakes_AreAllSent) {
  start(disk().path(), nullptr, {{"limits", {{"max_body", "4KiB"}}}, {"watch", {{"batch", "10s"}}}});
  for (int number = 0; number < 3 * tree_directories; ++number)
    change("many/directory with a long name " + std::to_string(number));
  expect_truth();
  for (int number = 0; number < 3 * tree_directories; ++number)
    change("many/directory with a long name " + std::to_string(number));
  expect_truth();
  EXPECT_GT(last_scan_["dirs_walked"], 3 * tree_directories);
  expect_no_gap();
}

TEST_F(RestartTest, RestartOfSpoord_IsNoGap) {
  start_with(nullptr);
  change("tree/d1");
  EXPECT_EQ(node().stop_daemon(), 0) << node().daemon().log();
  change("tree/d2");
  node().start_daemon();
  expect_truth();
  expect_no_gap();
}

TEST_F(RestartTest, RemountedDrive_IsAGap) {
  start_with(nullptr);
  const std::string before = node().gap_id();
  ASSERT_TRUE(disk().unmount()) << node().watch().log();
  change_elsewhere();
  EXPECT_NE(node().gap_id(), before);
  expect_truth();
  expect_gap();
  EXPECT_EQ(node().stop_watch(), 0) << node().watch().log();
}

// A program may have a file open below a mount that was made later.
TEST_F(RestartTest, ChangeHiddenByAMount_IsFoundOnceItIsUnmounted) {
  start_with(nullptr);
  {
    std::ofstream open(disk().path() / "tree/d1/file", std::ios::app);
    faults::MountPoint above(disk().path() / "tree/d1");
    above.mount_tmpfs("1m");
    open << "written beneath" << std::flush;
    node().synchronise();
  }
  expect_truth();
}

// As an NFS server does that has just been started: the kernel does not know the file's directory.
TEST_F(RestartTest, FileWrittenByItsHandle_IsAGap) {
  start_with(nullptr);
  const fs::path file = node().drive() / "by-handle";
  std::ofstream(file) << "before";
  alignas(file_handle) std::array<char, sizeof(file_handle) + MAX_HANDLE_SZ> bytes{};
  auto* const handle = reinterpret_cast<file_handle*>(bytes.data());
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount_id = 0;
  ASSERT_EQ(::name_to_handle_at(AT_FDCWD, file.c_str(), handle, &mount_id, 0), 0);
  ASSERT_TRUE(disk().unmount()) << node().watch().log();
  disk().mount();
  const std::string before = node().gap_id();
  {
    const base::Descriptor drive(::open(node().drive().c_str(), O_RDONLY | O_DIRECTORY));
    const base::Descriptor written(::open_by_handle_at(drive.get(), handle, O_WRONLY | O_APPEND));
    ASSERT_EQ(::write(written.get(), "after", 5), 5);
  }
  EXPECT_NE(node().gap_id(), before) << node().watch().log();
  expect_truth();
  expect_gap();
}

// The queue that was kept belongs to the file system as it was mounted then.
TEST_F(RestartTest, DriveRemountedWhileStopped_WithStoredDescriptors_IsAGap) {
  start_with(&manager_);
  EXPECT_EQ(node().stop_watch(), 0) << node().watch().log();
  ASSERT_TRUE(disk().unmount());
  change_elsewhere();
  node().start_watch();
  expect_truth();
  expect_gap();
}

}  // namespace
}  // namespace spoor::watch
