#include "watch/drive_watch.h"

#include <gmock/gmock.h>
#include <spdlog/spdlog.h>
#include <sys/fanotify.h>

#include <deque>
#include <map>
#include <system_error>
#include <utility>

#include "tests/fakes/manual_clock.h"

namespace spoor::watch {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

base::Error failure(std::errc code, std::string why) { return {std::make_error_code(code), std::move(why)}; }

class DriveWatchTest : public testing::Test, public MarkSink, public GapSink {
 protected:
  class Source final : public EventSource {
   public:
    explicit Source(DriveWatchTest& test) : test_(test) {}

    base::Result<> enter() override {
      if (!test_.unmounted_.empty()) return failure(std::errc::no_such_device, test_.unmounted_);
      return {};
    }
    void leave() override {}
    base::Result<std::vector<KernelEvent>> read() override {
      return std::exchange(test_.events_, std::vector<KernelEvent>());
    }
    DirectoryPaths& paths() override { return paths_; }
    std::uint64_t queue_bytes() override { return test_.queue_bytes_; }
    void settle(const std::string& gap_id) override { test_.settled_ = gap_id; }
    void discard() override { ++test_.discarded_; }
    int descriptor() const override { return 1; }
    std::vector<std::string> own_directories() const override { return {".spoor"}; }

   private:
    DriveWatchTest& test_;
    DirectoryPaths paths_{[this](const DirectoryHandle& handle) -> base::Result<std::optional<Place>> {
                            const auto found = test_.paths_.find(handle);
                            if (found == test_.paths_.end())
                              return failure(std::errc::not_enough_memory, "no memory");
                            return std::optional(Place{found->second});
                          },
                          std::size_t{1} << 20U};
  };

  DriveWatchTest() { spdlog::set_level(spdlog::level::off); }

  void start(std::unique_ptr<EventSource> kept = nullptr) {
    watch_.emplace(
        DriveWatch::Options{.drive = "/drive", .pending_bytes_max = 1000, .queue_bytes_max = 100},
        [this]() -> base::Result<std::unique_ptr<EventSource>> {
          if (!unmounted_.empty()) return failure(std::errc::no_such_device, unmounted_);
          queue_bytes_ = 0;
          return std::unique_ptr<EventSource>(std::make_unique<Source>(*this));
        },
        *this, *this, clock_, std::move(kept), "gap 0");
    watch_->step();
  }

  void happens(std::uint64_t mask, const EntryName& entry, std::optional<EntryName> target = {}) {
    events_.push_back({mask, entry, std::move(target)});
  }

  base::Result<> send(const EventMarks& marks) override {
    if (refuses_ != std::errc()) return failure(refuses_, "the daemon is down");
    marked_.insert(marks.directories().begin(), marks.directories().end());
    return {};
  }
  base::Result<std::string> add_gap(const std::filesystem::path&, const std::string& reason) override {
    if (is_disk_full_) return failure(std::errc::no_space_on_device, "the disk is full");
    gaps_.push_back(reason);
    return "gap " + std::to_string(gaps_.size());
  }

  std::map<DirectoryHandle, std::string> paths_ = {{"a", "a"}, {"b", "b"}, {"c", "a/c"}};
  std::vector<KernelEvent> events_;
  std::uint64_t queue_bytes_ = 0;
  std::string unmounted_;  // why; empty: it is mounted
  std::errc refuses_ = std::errc();
  bool is_disk_full_ = false;
  std::set<std::string> marked_;
  std::vector<std::string> gaps_;
  std::string settled_;
  int discarded_ = 0;
  fakes::ManualClock clock_;
  std::optional<DriveWatch> watch_;
};

TEST_F(DriveWatchTest, Start_IsAGap) {
  start();
  EXPECT_THAT(gaps_, SizeIs(1));
  EXPECT_EQ(settled_, "gap 1");
  EXPECT_EQ(watch_->error(), "");
}

TEST_F(DriveWatchTest, StartWithKeptSource_IsNoGap) {
  start(std::make_unique<Source>(*this));
  EXPECT_THAT(gaps_, IsEmpty());
  EXPECT_EQ(settled_, "gap 0");
}

TEST_F(DriveWatchTest, Event_IsMarkedAndCounted) {
  start();
  for (int i = 0; i < 3; ++i) happens(FAN_MODIFY, {"a", "file"});
  watch_->step();
  EXPECT_THAT(marked_, ElementsAre("a"));
  EXPECT_EQ(watch_->figures().events, 3U);
  EXPECT_EQ(watch_->figures().coalesced, 2U);
  EXPECT_EQ(watch_->figures().marks, 1U);
}

TEST_F(DriveWatchTest, EventOfMarkedDirectory_IsMarkedAgain) {
  start();
  happens(FAN_MODIFY, {"a", "file"});
  watch_->step();
  marked_.clear();  // another cycle
  happens(FAN_MODIFY, {"a", "file"});
  watch_->step();
  EXPECT_THAT(marked_, ElementsAre("a"));
}

TEST_F(DriveWatchTest, DaemonDown_MarksWaitAndAreRetriedWithPauses) {
  start();
  settled_.clear();
  refuses_ = std::errc::connection_refused;
  happens(FAN_MODIFY, {"a", "file"});
  watch_->step();
  EXPECT_EQ(watch_->error(), "the daemon is down");
  EXPECT_EQ(watch_->figures().pending_marks, 1U);
  EXPECT_FALSE(watch_->is_settled());
  EXPECT_EQ(settled_, "");
  refuses_ = std::errc();
  happens(FAN_MODIFY, {"b", "file"});
  watch_->step();
  EXPECT_THAT(marked_, IsEmpty()) << "in the pause";
  clock_.advance(watch_->due_in());
  EXPECT_GT(watch_->figures().lag_seconds, 0);
  watch_->step();
  EXPECT_THAT(marked_, ElementsAre("a", "b"));
  EXPECT_EQ(watch_->error(), "");
  EXPECT_EQ(settled_, "gap 1");
  EXPECT_THAT(gaps_, SizeIs(1)) << "of the start";
}

TEST_F(DriveWatchTest, PauseBetweenAttempts_GrowsToABound) {
  start();
  refuses_ = std::errc::connection_refused;
  happens(FAN_MODIFY, {"a", "file"});
  std::chrono::nanoseconds last{0};
  for (int attempt = 0; attempt < 12; ++attempt) {
    watch_->step();
    EXPECT_GE(watch_->due_in(), last);
    last = watch_->due_in();
    clock_.advance(seconds(5));
  }
  EXPECT_EQ(last, seconds(1)) << "events are read meanwhile";
}

TEST_F(DriveWatchTest, MorePendingThanFits_IsAGap) {
  start();
  refuses_ = std::errc::connection_refused;
  for (char name = 'd'; name < 'z'; ++name) {
    paths_[std::string(1, name)] = std::string(50, name);
    happens(FAN_MODIFY, {std::string(1, name), "file"});
  }
  watch_->step();
  EXPECT_THAT(gaps_, Contains(testing::HasSubstr("than fits in memory")));
  EXPECT_EQ(watch_->figures().pending_marks, 0U);
}

TEST_F(DriveWatchTest, RefusedPath_IsAGap) {
  start();
  refuses_ = std::errc::invalid_argument;
  happens(FAN_MODIFY, {"a", "file"});
  watch_->step();
  EXPECT_THAT(gaps_, SizeIs(2));
  EXPECT_TRUE(watch_->is_settled());
}

// A scan may use other credentials, and succeed.
TEST_F(DriveWatchTest, DaemonRefusesAllMarks_IsAGapEachMinute) {
  start();
  refuses_ = std::errc::permission_denied;
  happens(FAN_MODIFY, {"a", "file"});
  for (int second = 0; second < 100; ++second) {
    watch_->step();
    clock_.advance(seconds(1));
  }
  EXPECT_THAT(gaps_, SizeIs(3)) << "that of the start, and two";
  EXPECT_EQ(watch_->figures().pending_marks, 1U);
}

TEST_F(DriveWatchTest, ManyPendingMarks_AreSentWhileEventsAreRead) {
  start();
  for (int round = 0; round < 3; ++round) {
    for (char name = 'd'; name < 'z'; ++name) {
      paths_[std::string(1, name)] = std::string(50, name);
      happens(FAN_MODIFY, {std::string(1, name), "file"});
    }
    watch_->step();
  }
  EXPECT_THAT(gaps_, SizeIs(1)) << "of the start";
}

TEST_F(DriveWatchTest, ManyGaps_ArePaced) {
  start();
  for (int second = 0; second < 60; ++second) {
    happens(FAN_Q_OVERFLOW, {});
    watch_->step();
    clock_.advance(seconds(1));
  }
  EXPECT_LE(gaps_.size(), 4U + 60U / 5U);
  EXPECT_GE(gaps_.size(), 60U / 5U);
  EXPECT_FALSE(watch_->is_settled());
  clock_.advance(minutes(1));
  watch_->step();
  EXPECT_TRUE(watch_->is_settled());
}

TEST_F(DriveWatchTest, DroppedEvents_AreAGapAndTheWatchGoesOn) {
  start();
  happens(FAN_Q_OVERFLOW, {});
  watch_->step();
  EXPECT_THAT(gaps_, Contains(testing::HasSubstr("the kernel dropped events")));
  EXPECT_EQ(discarded_, 0);
  happens(FAN_MODIFY, {"a", "file"});
  watch_->step();
  EXPECT_THAT(marked_, ElementsAre("a"));
}

// What follows in the batch is not read: it may have been a rename.
TEST_F(DriveWatchTest, UnresolvedDirectory_IsAGapAndForgetsCachedPaths) {
  start();
  happens(FAN_MODIFY, {"c", "file"});
  happens(FAN_MODIFY, {"unknown", "file"});
  happens(FAN_RENAME | FAN_ONDIR, {"a", "c"}, EntryName{"b", "c"});
  watch_->step();
  EXPECT_THAT(gaps_, Contains("no memory"));
  paths_["c"] = "b/c";
  marked_.clear();
  happens(FAN_MODIFY, {"c", "file"});
  watch_->step();
  EXPECT_THAT(marked_, ElementsAre("b/c"));
}

TEST_F(DriveWatchTest, GapThatCannotBeStored_IsRetried) {
  is_disk_full_ = true;
  start();
  EXPECT_FALSE(watch_->is_settled());
  EXPECT_EQ(settled_, "");
  is_disk_full_ = false;
  watch_->step();
  EXPECT_THAT(gaps_, SizeIs(1));
  EXPECT_EQ(settled_, "gap 1");
}

TEST_F(DriveWatchTest, DriveUnmounted_IsOpenedAgainWithAGap) {
  start();
  unmounted_ = "it is not mounted";
  watch_->step();
  EXPECT_EQ(discarded_, 1);
  EXPECT_EQ(watch_->error(), "it is not mounted");
  EXPECT_THAT(gaps_, SizeIs(2));
  unmounted_.clear();
  clock_.advance(minutes(1));
  watch_->step();
  EXPECT_EQ(watch_->error(), "");
  EXPECT_THAT(gaps_, SizeIs(3)) << "what changed before it was watched again";
}

TEST_F(DriveWatchTest, DriveThatCannotBeWatched_IsAGapEachMinute) {
  unmounted_ = "it is a network file system";
  start();
  for (int second = 0; second < 180; ++second) {
    clock_.advance(seconds(1));
    watch_->step();
  }
  EXPECT_THAT(gaps_, SizeIs(4));
}

TEST_F(DriveWatchTest, TooManyUnreadEvents_AreAGap) {
  start();
  queue_bytes_ = 101;
  watch_->step();
  EXPECT_EQ(discarded_, 1);
  EXPECT_THAT(gaps_, SizeIs(2));
  EXPECT_EQ(watch_->figures().queue_bytes_max, 101U);
}

}  // namespace
}  // namespace spoor::watch
