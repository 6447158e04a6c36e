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

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

base::Error failure(std::errc code, std::string why) { return {std::make_error_code(code), std::move(why)}; }

class DriveWatchTest : public testing::Test, public MarkSink {
 protected:
  class Source final : public EventSource {
   public:
    explicit Source(DriveWatchTest& test) : EventSource(std::size_t{1} << 20U), test_(test) {}

    base::Result<> enter() override {
      if (!test_.unmounted_.empty()) return failure(std::errc::no_such_device, test_.unmounted_);
      return {};
    }
    void leave() override {}
    base::Result<std::vector<KernelEvent>> read() override {
      return std::exchange(test_.events_, std::vector<KernelEvent>());
    }
    base::Result<std::optional<Place>> resolve(const DirectoryHandle& handle) override {
      const auto found = test_.paths_.find(handle);
      if (found == test_.paths_.end()) return failure(std::errc::not_enough_memory, "no memory");
      return std::optional(Place{found->second});
    }
    base::Result<std::optional<Place>> resolve(const EntryName&, const FileHandle&) override {
      return std::optional<Place>();
    }
    std::uint64_t queue_bytes() override { return test_.queue_bytes_; }
    void settle(const peer::DriveGap& gap) override { test_.settled_ = gap.id; }
    const peer::DriveGap& settled() const override { return kept_; }
    void discard() override { ++test_.discarded_; }
    int descriptor() const override { return 1; }
    std::vector<std::string> own_directories() const override { return {".spoor"}; }

   private:
    DriveWatchTest& test_;
    peer::DriveGap kept_{"kept gap", "an earlier one", {}};
  };

  DriveWatchTest() { spdlog::set_level(spdlog::level::off); }

  void start(std::unique_ptr<EventSource> kept = nullptr) {
    watch_.emplace(
        DriveWatch::Options{
            .drive = "/drive", .batch = batch_, .pending_bytes_max = 1000, .queue_bytes_max = 100},
        [this]() -> base::Result<std::unique_ptr<EventSource>> {
          if (!unmounted_.empty()) return failure(std::errc::no_such_device, unmounted_);
          queue_bytes_ = 0;
          return std::unique_ptr<EventSource>(std::make_unique<Source>(*this));
        },
        *this, clock_, std::move(kept));
    watch_->step();
  }

  void happens(std::uint64_t mask, const EntryName& entry, std::optional<EntryName> target = {}) {
    events_.push_back({mask, entry, std::move(target)});
  }

  base::Result<> send(const std::filesystem::path&, const EventMarks& marks) override {
    if (refuses_ != std::errc()) return failure(refuses_, "the daemon is down");
    marked_.insert(marks.of(MarkKind::dir).begin(), marks.of(MarkKind::dir).end());
    return {};
  }
  base::Result<> report(const peer::WatchedDrive& drive) override {
    ++reports_;
    if (is_report_refused_) return failure(std::errc::connection_refused, "the daemon is down");
    last_ = drive;
    if (!drive.cookie.empty()) cookies_.push_back(drive.cookie + ' ' + drive.gap.id);
    return {};
  }

  // A file changes in each of these directories, and the watch does a step.
  void change(const std::string& directories) {
    for (const char each : directories) happens(FAN_MODIFY, {std::string(1, each), "file"});
    watch_->step();
  }

  // More than fits in the memory for marks that wait.
  void change_many() {
    for (char name = 'd'; name < 'z'; ++name) paths_[std::string(1, name)] = std::string(50, name);
    change("defghijklmnopqrstuvwxy");
  }

  void step_when_due() {
    clock_.advance(watch_->due_in());
    watch_->step();
  }

  // What a scan finds that begins now: the gap, once its cookie is confirmed.
  std::string scan() {
    const std::string cookie = "cookie-" + std::string(32, static_cast<char>('a' + scans_++ % 6));
    cookies_.clear();
    happens(FAN_CREATE, {"spoor", cookie});
    watch_->step();
    return cookies_.empty() ? "" : cookies_.back().substr(cookie.size() + 1);
  }

  std::string gap_reason() const { return watch_->state().gap.reason; }
  std::string error() const { return watch_->state().error; }
  peer::WatchFigures figures() const { return watch_->state().figures; }

  std::map<DirectoryHandle, std::string> paths_ = {{"a", "a"}, {"b", "b"}, {"c", "a/c"}, {"spoor", ".spoor"}};
  std::vector<KernelEvent> events_;
  std::chrono::milliseconds batch_{0};
  std::uint64_t queue_bytes_ = 0;
  std::string unmounted_;  // why; empty: it is mounted
  std::errc refuses_ = std::errc();
  bool is_report_refused_ = false;
  std::set<std::string> marked_;
  int reports_ = 0;
  int scans_ = 0;
  peer::WatchedDrive last_;
  std::vector<std::string> cookies_;  // with their gap
  std::string settled_;
  int discarded_ = 0;
  fakes::ManualClock clock_;
  std::optional<DriveWatch> watch_;
};

TEST_F(DriveWatchTest, Start_IsAGap) {
  start();
  EXPECT_EQ(gap_reason(), "changes before spoor-watch started were not watched");
  EXPECT_EQ(settled_, watch_->state().gap.id);
  EXPECT_TRUE(last_.is_watched);
  EXPECT_EQ(last_.error, "");
}

TEST_F(DriveWatchTest, StartWithKeptSource_IsNoGap) {
  start(std::make_unique<Source>(*this));
  EXPECT_EQ(settled_, "kept gap");
  EXPECT_EQ(scan(), "kept gap");
  EXPECT_EQ(figures().gaps, 0U);
}

TEST_F(DriveWatchTest, Event_IsMarkedAndCounted) {
  start();
  change("aaa");
  EXPECT_THAT(marked_, ElementsAre("a"));
  EXPECT_EQ(figures().events, 3U);
  EXPECT_EQ(figures().coalesced, 2U);
  EXPECT_EQ(figures().marks, 1U);
  marked_.clear();
  change("a");
  EXPECT_THAT(marked_, ElementsAre("a")) << "it may be another cycle";
}

TEST_F(DriveWatchTest, Marks_WaitForMoreOfThem) {
  batch_ = seconds(1);
  start();
  change("a");
  EXPECT_EQ(watch_->due_in(), seconds(1));
  clock_.advance(milliseconds(500));
  change("b");
  EXPECT_THAT(marked_, IsEmpty());
  step_when_due();
  EXPECT_THAT(marked_, ElementsAre("a", "b"));
}

TEST_F(DriveWatchTest, Cookie_IsReportedOnceAfterTheMarksBeforeIt) {
  start();
  happens(FAN_MODIFY, {"a", "file"});
  EXPECT_EQ(scan(), watch_->state().gap.id);
  EXPECT_THAT(marked_, ElementsAre("a"));
  clock_.advance(minutes(1));
  cookies_.clear();
  watch_->step();
  EXPECT_THAT(cookies_, IsEmpty());
}

// A scan waits.
TEST_F(DriveWatchTest, MarksThatWait_AreSentForACookie) {
  for (const bool is_refused : {false, true}) {
    batch_ = is_refused ? seconds(0) : minutes(1);
    start();
    refuses_ = is_refused ? std::errc::connection_refused : std::errc();
    change("a");
    refuses_ = std::errc();
    EXPECT_NE(scan(), "");
    EXPECT_THAT(std::exchange(marked_, {}), ElementsAre("a"));
  }
}

TEST_F(DriveWatchTest, CookieWhileMarksWait_IsReportedOnceTheyAreMarked) {
  start();
  refuses_ = std::errc::connection_refused;
  happens(FAN_MODIFY, {"a", "file"});
  EXPECT_EQ(scan(), "");
  clock_.advance(minutes(1));
  watch_->step();
  EXPECT_THAT(cookies_, IsEmpty());
  refuses_ = std::errc();
  step_when_due();
  EXPECT_THAT(marked_, ElementsAre("a"));
  EXPECT_THAT(cookies_, SizeIs(1));
}

TEST_F(DriveWatchTest, NamesLikeCookies_ConfirmNothing) {
  start();
  const std::string name = "cookie-" + std::string(32, 'a');
  paths_["inner"] = "a/.spoor";
  happens(FAN_CREATE, {"inner", name});
  happens(FAN_CREATE, {"a", name});
  happens(FAN_CREATE, {"spoor", "cookie-" + std::string(31, 'a')});
  happens(FAN_CREATE, {"spoor", ".tracker.bin.tmp"});
  watch_->step();
  EXPECT_THAT(cookies_, IsEmpty());
}

TEST_F(DriveWatchTest, ReportThatFails_IsRepeatedWithTheCookie) {
  start();
  is_report_refused_ = true;
  EXPECT_EQ(scan(), "");
  is_report_refused_ = false;
  EXPECT_GT(watch_->due_in(), seconds(0)) << "it does not spin";
  step_when_due();
  EXPECT_THAT(cookies_, SizeIs(1));
}

// A refused report is no reason to keep marks.
TEST_F(DriveWatchTest, ReportThatFails_DelaysNoMark) {
  start();
  is_report_refused_ = true;
  clock_.advance(minutes(1));
  watch_->step();
  change("a");
  EXPECT_THAT(marked_, ElementsAre("a"));
}

TEST_F(DriveWatchTest, IdleDrive_IsReportedAtIntervals) {
  start();
  const int before = reports_;
  for (int second = 0; second < 60; ++second) {
    clock_.advance(seconds(1));
    watch_->step();
  }
  EXPECT_EQ(reports_ - before, 20);
}

TEST_F(DriveWatchTest, DaemonDown_MarksWaitAndAreRetriedWithPauses) {
  start();
  settled_.clear();
  refuses_ = std::errc::connection_refused;
  change("a");
  EXPECT_EQ(error(), "the daemon is down");
  EXPECT_EQ(figures().pending_marks, 1U);
  EXPECT_FALSE(watch_->is_settled());
  EXPECT_EQ(settled_, "");
  refuses_ = std::errc();
  change("b");
  EXPECT_THAT(marked_, IsEmpty()) << "in the pause";
  clock_.advance(watch_->due_in());
  EXPECT_GT(figures().lag_seconds, 0);
  watch_->step();
  EXPECT_THAT(marked_, ElementsAre("a", "b"));
  EXPECT_EQ(error(), "");
  EXPECT_EQ(settled_, watch_->state().gap.id);
  EXPECT_EQ(figures().gaps, 1U) << "of the start";
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
  const std::string before = scan();
  refuses_ = std::errc::connection_refused;
  change_many();
  EXPECT_THAT(gap_reason(), testing::HasSubstr("than fits in memory"));
  EXPECT_EQ(figures().pending_marks, 0U);
  EXPECT_NE(scan(), before);
}

TEST_F(DriveWatchTest, RefusedPath_IsAGap) {
  start();
  const std::string before = scan();
  refuses_ = std::errc::invalid_argument;
  change("a");
  EXPECT_TRUE(watch_->is_settled());
  EXPECT_NE(scan(), before);
}

TEST_F(DriveWatchTest, ManyPendingMarks_AreSentWhileEventsAreRead) {
  batch_ = minutes(1);
  start();
  const std::string before = scan();
  for (int round = 0; round < 3; ++round) change_many();
  EXPECT_EQ(scan(), before) << "no gap";
}

// However many there are, the next scan walks the drive once.
TEST_F(DriveWatchTest, GapsBetweenTwoScans_AreOne) {
  start();
  const std::string first = scan();
  for (int count = 0; count < 5; ++count) {
    happens(FAN_Q_OVERFLOW, {});
    watch_->step();
  }
  const std::string second = scan();
  EXPECT_NE(second, first);
  EXPECT_EQ(figures().gaps, 2U);
  EXPECT_EQ(scan(), second);
}

// The daemon may have it, although its response was lost.
TEST_F(DriveWatchTest, GapAfterACookieWhoseReportFailed_IsAnother) {
  start();
  is_report_refused_ = true;
  EXPECT_EQ(scan(), "");
  const std::string sent = watch_->state().gap.id;
  is_report_refused_ = false;
  happens(FAN_Q_OVERFLOW, {});
  watch_->step();
  EXPECT_NE(watch_->state().gap.id, sent);
}

TEST_F(DriveWatchTest, DroppedEvents_AreAGapAndTheWatchContinues) {
  start();
  const std::string before = scan();
  happens(FAN_Q_OVERFLOW, {});
  EXPECT_NE(scan(), before) << "the cookie is in the same batch";
  EXPECT_THAT(gap_reason(), testing::HasSubstr("the kernel dropped events"));
  EXPECT_EQ(discarded_, 0);
  change("a");
  EXPECT_THAT(marked_, ElementsAre("a"));
}

// What follows in the batch is not read: it may have been a rename.
TEST_F(DriveWatchTest, UnresolvedDirectory_IsAGapAndForgetsCachedPaths) {
  start();
  scan();
  happens(FAN_MODIFY, {"c", "file"});
  happens(FAN_MODIFY, {"unknown", "file"});
  happens(FAN_RENAME | FAN_ONDIR, {"a", "c"}, EntryName{"b", "c"});
  watch_->step();
  EXPECT_EQ(gap_reason(), "no memory");
  paths_["c"] = "b/c";
  marked_.clear();
  happens(FAN_MODIFY, {"c", "file"});
  watch_->step();
  EXPECT_THAT(marked_, ElementsAre("b/c"));
}

TEST_F(DriveWatchTest, DriveUnmounted_IsOpenedAgainWithAGap) {
  start();
  const std::string before = scan();
  unmounted_ = "it is not mounted";
  EXPECT_EQ(scan(), "");
  EXPECT_EQ(discarded_, 1) << "no later process continues it";
  EXPECT_FALSE(last_.is_watched);
  EXPECT_EQ(last_.error, "it is not mounted");
  unmounted_.clear();
  clock_.advance(minutes(1));
  watch_->step();
  EXPECT_TRUE(last_.is_watched);
  EXPECT_EQ(last_.error, "");
  EXPECT_EQ(gap_reason(), "it is not mounted");
  EXPECT_NE(scan(), before) << "what changed before it was watched again";
}

TEST_F(DriveWatchTest, TooManyUnreadEvents_AreAGap) {
  start();
  const std::string before = scan();
  queue_bytes_ = 101;
  watch_->step();
  EXPECT_EQ(discarded_, 1);
  EXPECT_EQ(figures().queue_bytes_max, 101U);
  EXPECT_EQ(gap_reason(), "more events waited than fit in the memory for them");
  EXPECT_NE(scan(), before);
}

// Its events are read at once: more of them do not come soon.
TEST_F(DriveWatchTest, OnlyChanges_MakeTheDriveBusy) {
  start();
  scan();
  EXPECT_FALSE(watch_->is_busy());
  change("a");
  EXPECT_TRUE(watch_->is_busy());
  watch_->step();
  EXPECT_FALSE(watch_->is_busy());
}

}  // namespace
}  // namespace spoor::watch
