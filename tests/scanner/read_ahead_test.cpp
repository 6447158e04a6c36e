#include "scanner/walk/read_ahead.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "scanner/errors.h"

namespace spoor::scanner {
namespace {

constexpr std::uint64_t mount = 1;
constexpr std::size_t subdirectories = 10;  // of each directory

// Directories that are nowhere: each is what its path says. Some can be held up.
class GatedReader final : public DirectoryReader {
 public:
  // A read of it waits until open_gate() or the stop.
  void close_gate(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    closed_.insert(path);
  }

  void open_gate(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    closed_.erase(path);
    changed_.notify_all();
  }

  void wait_until_begun(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_.size() >= count; });
  }

  // In that order.
  std::vector<std::string> begun() const {
    const std::scoped_lock lock(mutex_);
    return begun_;
  }

  std::size_t reads_by(std::thread::id thread) const {
    const std::scoped_lock lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count(threads_, thread));
  }

  base::Result<DirectoryHandle> open_drive(const std::filesystem::path& /*drive*/) const override {
    return DirectoryHandle();
  }

  bool changes_times_with_entries(const DirectoryHandle& /*directory*/) const override { return false; }

  base::Result<DirectoryFacts> look_at(const DirectoryHandle& /*top*/, std::string_view /*below*/,
                                       std::string_view /*path*/) const override {
    return DirectoryFacts();
  }

  base::Result<DirectoryHandle> look_at_drive(const std::filesystem::path& /*drive*/) const override {
    return DirectoryHandle();
  }

  base::Result<std::optional<std::string>> read_file(const DirectoryHandle& /*root*/, const char* /*name*/,
                                                     std::size_t /*bytes_max*/) const override {
    return std::optional<std::string>();
  }

  base::Result<DirectoryHandle> open(const DirectoryHandle& parent, std::string_view name,
                                     std::string_view path) const override {
    if (name.starts_with("gone")) return base::system_error(ENOENT, "cannot open the directory");
    DirectoryHandle handle;
    handle.mount = name.starts_with("mount") ? mount + 1 : mount;
    handle.inode = parent.inode + std::hash<std::string_view>()(path);
    return handle;
  }

  base::Result<Listing> read(const DirectoryHandle& directory, std::string_view path,
                             const tracker::NamespaceRules& /*rules*/, const ListingParts& /*parts*/,
                             const std::stop_token& stop) const override {
    {
      std::unique_lock lock(mutex_);
      begun_.emplace_back(path);
      threads_.push_back(std::this_thread::get_id());
      changed_.notify_all();
      changed_.wait(lock, stop, [&] { return !closed_.contains(path); });
    }
    if (stop.stop_requested()) return interrupted_error();
    if (path.ends_with("broken")) return base::system_error(EIO, "cannot list the directory");
    Listing listing;
    listing.signature = directory.inode + 1;
    for (std::size_t number = 0; number < subdirectories; ++number) {
      listing.subdirectories.add(fmt::format("{}", number), number);
    }
    return listing;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::set<std::string, std::less<>> closed_;
  mutable std::vector<std::string> begun_;
  mutable std::vector<std::thread::id> threads_;
};

class ReadAheadTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  ReadAhead& start(std::size_t threads, std::size_t listed_bytes_max = 32U << 20U) {
    read_ahead_.emplace(reader_, rules_,
                        ReadAhead::Options{.mount = mount,
                                           .threads = threads,
                                           .stop = stop_.get_token(),
                                           .listed_bytes_max = listed_bytes_max});
    return *read_ahead_;
  }

  ReadAhead::Ticket ticket(const std::string& path) const {
    return std::make_shared<ReadAhead::Task>(ReadAhead::Task{.parent = parent_, .path = path});
  }

  static void wait_until_ready(const ReadAhead& read_ahead, const ReadAhead::Task& task) {
    while (!read_ahead.is_ready(task)) std::this_thread::yield();
  }

  static std::shared_ptr<ParentDirectory> some_parent() {
    DirectoryHandle handle;
    handle.inode = 1000;
    return std::make_shared<ParentDirectory>(std::make_shared<const DirectoryHandle>(std::move(handle)));
  }

  GatedReader reader_;
  const tracker::NamespaceRules rules_;
  const std::shared_ptr<ParentDirectory> parent_ = some_parent();
  std::stop_source stop_;
  std::optional<ReadAhead> read_ahead_;
};

TEST_P(ReadAheadTest, Take_ReturnsWhatTheReaderReads) {
  ReadAhead& read_ahead = start(GetParam());
  for (std::size_t depth = 1; depth <= 30; ++depth) {
    std::vector<ReadAhead::Ticket> tickets;
    for (const char* name : {"one", "two", "gone", "mount", "broken", "three"}) {
      tickets.push_back(ticket(fmt::format("top/{}/{}", depth, name)));
    }
    read_ahead.submit(depth, tickets);
    for (std::size_t at : {0U, 1U, 5U}) {
      auto found = read_ahead.take(*tickets[at]);
      ASSERT_TRUE(found);
      EXPECT_FALSE(found->is_mount_point);
      EXPECT_EQ(found->listing.subdirectories.size(), subdirectories);
      const char* const name = at == 0 ? "one" : at == 1 ? "two" : "three";
      const auto inode = 1000 + std::hash<std::string>()(fmt::format("top/{}/{}", depth, name));
      EXPECT_EQ(found->handle.inode, inode);
      EXPECT_EQ(found->listing.signature, inode + 1);
    }
    EXPECT_EQ(read_ahead.take(*tickets[2]).error().code, std::errc::no_such_file_or_directory);
    const auto mount = read_ahead.take(*tickets[3]);
    EXPECT_TRUE(mount && mount->is_mount_point && mount->listing.subdirectories.empty());
    EXPECT_EQ(read_ahead.take(*tickets[4]).error().code, std::errc::io_error);
  }
  EXPECT_EQ(reader_.begun().size(), 30U * 4) << "each that can be opened is listed, once";
}

TEST_P(ReadAheadTest, StopRequested_EndsQueuedAndRunningTasks) {
  ReadAhead& read_ahead = start(GetParam());
  std::vector<ReadAhead::Ticket> tickets;
  for (int number = 0; number < 50; ++number) {
    tickets.push_back(ticket(fmt::format("{}", number)));
    reader_.close_gate(fmt::format("{}", number));
  }
  read_ahead.submit(1, tickets);
  reader_.wait_until_begun(GetParam());
  EXPECT_EQ(reader_.begun().size(), GetParam()) << "no more at once than threads";
  stop_.request_stop();
  EXPECT_EQ(read_ahead.take(*tickets.back()).error().code, Errc::interrupted);
  EXPECT_EQ(read_ahead.take(*tickets.front()).error().code, Errc::interrupted);
  read_ahead_.reset();
}

INSTANTIATE_TEST_SUITE_P(Threads, ReadAheadTest, ::testing::Values(0, 1, 4));

TEST_F(ReadAheadTest, DeepestAndLastSubmitted_AreReadFirst) {
  ReadAhead& read_ahead = start(1);
  reader_.close_gate("first");
  read_ahead.submit(9, {ticket("first")});
  reader_.wait_until_begun(1);
  read_ahead.submit(1, {ticket("a"), ticket("b")});
  read_ahead.submit(3, {ticket("c"), ticket("d")});
  read_ahead.submit(2, {ticket("e")});
  reader_.open_gate("first");
  reader_.wait_until_begun(6);
  EXPECT_EQ(reader_.begun(), (std::vector<std::string>{"first", "d", "c", "e", "b", "a"}));
}

TEST_F(ReadAheadTest, QueuedTask_IsReadByTheThreadThatTakesIt) {
  ReadAhead& read_ahead = start(1);
  reader_.close_gate("busy");
  read_ahead.submit(1, {ticket("busy")});
  reader_.wait_until_begun(1);
  const auto queued = ticket("queued");
  read_ahead.submit(1, {queued});
  EXPECT_FALSE(read_ahead.is_ready(*queued));
  EXPECT_TRUE(read_ahead.take(*queued));
  EXPECT_EQ(reader_.reads_by(std::this_thread::get_id()), 1U);
  reader_.open_gate("busy");
  read_ahead_.reset();
  EXPECT_EQ(reader_.begun(), (std::vector<std::string>{"busy", "queued"}));
}

TEST_F(ReadAheadTest, TaskInProgress_TakeWaitsForIt) {
  ReadAhead& read_ahead = start(1);
  reader_.close_gate("slow");
  const auto slow = ticket("slow");
  read_ahead.submit(1, {slow});
  reader_.wait_until_begun(1);
  EXPECT_FALSE(read_ahead.is_ready(*slow));
  auto taken = std::async(std::launch::async, [&] { return read_ahead.take(*slow); });
  reader_.open_gate("slow");
  EXPECT_TRUE(taken.get());
  EXPECT_EQ(reader_.begun().size(), 1U);
}

TEST_F(ReadAheadTest, FinishedTask_IsNotReadAgain) {
  ReadAhead& read_ahead = start(1);
  const auto early = ticket("early");
  read_ahead.submit(1, {early});
  wait_until_ready(read_ahead, *early);
  EXPECT_TRUE(read_ahead.take(*early));
  EXPECT_EQ(reader_.begun().size(), 1U);
  EXPECT_EQ(reader_.reads_by(std::this_thread::get_id()), 0U);
}

TEST_F(ReadAheadTest, ListedBytesMaxExceeded_NothingIsReadAhead) {
  ReadAhead& read_ahead = start(1, 1);
  const std::vector tickets{ticket("a"), ticket("b"), ticket("c")};
  reader_.close_gate("b");  // nobody would get past it
  read_ahead.submit(1, tickets);
  wait_until_ready(read_ahead, *tickets[2]);
  EXPECT_TRUE(read_ahead.is_ready(*tickets[0])) << "who waits for others to read it waits for ever";
  EXPECT_TRUE(read_ahead.take(*tickets[0]));
  EXPECT_EQ(reader_.begun(), (std::vector<std::string>{"c", "a"}));
  EXPECT_EQ(reader_.reads_by(std::this_thread::get_id()), 1U);
  EXPECT_TRUE(read_ahead.take(*tickets[2]));
  reader_.wait_until_begun(3);  // there is room again
  EXPECT_EQ(reader_.reads_by(std::this_thread::get_id()), 1U);
  reader_.open_gate("b");
  EXPECT_TRUE(read_ahead.take(*tickets[1]));
}

TEST_F(ReadAheadTest, DroppedResults_LeaveRoomForOthers) {
  ReadAhead& read_ahead = start(1, 1);
  const auto early = ticket("early");
  read_ahead.submit(1, {early});
  wait_until_ready(read_ahead, *early);
  read_ahead.drop(*early);
  reader_.close_gate("running");
  const auto running = ticket("running");
  read_ahead.submit(1, {running});
  reader_.wait_until_begun(2);
  const auto queued = ticket("queued");
  read_ahead.submit(1, {queued});
  read_ahead.drop(*running);
  read_ahead.drop(*queued);
  reader_.open_gate("running");
  const auto next = ticket("next");
  read_ahead.submit(1, {next});
  wait_until_ready(read_ahead, *next);
  EXPECT_TRUE(read_ahead.take(*next));
  EXPECT_EQ(reader_.begun(), (std::vector<std::string>{"early", "running", "next"}));
  EXPECT_EQ(reader_.reads_by(std::this_thread::get_id()), 0U);
}

TEST_F(ReadAheadTest, DestructorWithUntakenResults_Completes) {
  ReadAhead& read_ahead = start(4);
  std::vector<ReadAhead::Ticket> tickets;
  for (int number = 0; number < 500; ++number) tickets.push_back(ticket(fmt::format("{}", number)));
  read_ahead.submit(1, tickets);
  reader_.wait_until_begun(5);
  read_ahead_.reset();
  EXPECT_LE(reader_.begun().size(), 500U);
}

}  // namespace
}  // namespace spoor::scanner
