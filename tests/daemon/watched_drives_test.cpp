#include "daemon/status/watched_drives.h"

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/daemon/stepped_node.h"

namespace spoor::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class WatchedDrivesTest : public SteppedTest {
 protected:
  // What waits refers to the timers.
  void TearDown() override {
    watched_.stop();
    settle();
  }

  using Done = std::function<void(const base::Result<>&)>;

  void synchronise(std::vector<std::string> drives = {"/a"}, milliseconds timeout = seconds(10)) {
    results_ = run(watched_.synchronise({"default", "n", std::move(drives), timeout}));
  }

  void report(peer::WatchedDrive drive) {
    EXPECT_TRUE(watched_.report(std::move(drive)));
    settle();
  }
  static peer::WatchedDrive watched(const std::string& drive, std::string cookie = "") {
    return {
        .drive = drive, .is_watched = true, .gap = {"gap", "it started", {}}, .cookie = std::move(cookie)};
  }
  static peer::WatchedDrive failing(const std::string& drive, const std::string& error) {
    return {.drive = drive, .is_watched = false, .error = error};
  }

  std::string error_of(std::size_t at) { return *results_ ? (*results_)->at(at).error : "it waits"; }

  std::map<std::string, std::vector<std::string>> cookies_;  // made, by drive
  std::vector<Done> done_;
  WatchedDrives watched_{timers_,
                         clock_,
                         {"/a", "/b", "/c"},
                         {"/a", "/b"},
                         [this](const auto& drive, const auto& name, Done done) {
                           cookies_[drive.native()].push_back(name);
                           done_.push_back(std::move(done));
                         }};
  std::shared_ptr<std::optional<std::vector<peer::DriveSync>>> results_;
};

TEST_F(WatchedDrivesTest, ReportedCookie_ConfirmsWithItsGap) {
  synchronise({"/a", "/b"});
  EXPECT_FALSE(*results_);
  report(watched("/b", cookies_["/b"].front()));
  EXPECT_FALSE(*results_) << "the other drive is not confirmed";
  report(watched("/a", cookies_["/a"].front()));
  ASSERT_TRUE(*results_);
  EXPECT_THAT(**results_, SizeIs(2));
  EXPECT_EQ((*results_)->at(0).drive, "/a");
  EXPECT_EQ(error_of(0), "");
  EXPECT_EQ((*results_)->at(0).gap.id, "gap");
  EXPECT_THAT(timers_.waiting(), IsEmpty());
}

TEST_F(WatchedDrivesTest, OtherReports_ConfirmNothing) {
  synchronise();
  const std::string earlier = cookies_["/a"].front();
  report(watched("/a"));
  report(watched("/a", peer::new_cookie()));
  report(watched("/b", earlier));
  EXPECT_FALSE(*results_);
  report(watched("/a", earlier));
  ASSERT_TRUE(*results_);
  synchronise();
  report(watched("/a", earlier));
  EXPECT_FALSE(*results_) << "it is that of the scan before";
}

TEST_F(WatchedDrivesTest, NoReportInTime_IsAnError) {
  synchronise();
  for (int second = 0; second < 10; ++second) {
    EXPECT_FALSE(*results_);
    pass(seconds(1));
  }
  EXPECT_EQ(error_of(0), "spoor-watch did not respond within 10 s");
}

// spoor-watch may begin to watch while the scan waits. A drive that hangs gets no second one.
TEST_F(WatchedDrivesTest, Cookies_AreMadeAgainUntilOneIsReported) {
  synchronise();
  pass(seconds(1));
  EXPECT_THAT(cookies_["/a"], SizeIs(1)) << "the drive hangs";
  done_.front()({});
  pass(seconds(1));
  ASSERT_THAT(cookies_["/a"], SizeIs(2));
  EXPECT_EQ(cookies_["/a"][0], cookies_["/a"][1]);
  report(watched("/a", cookies_["/a"][0]));
  EXPECT_EQ(error_of(0), "");
}

TEST_F(WatchedDrivesTest, CookieThatCannotBeMade_IsAnError) {
  synchronise({"/a", "/b"});
  done_[0](base::Error(std::make_error_code(std::errc::read_only_file_system), "read-only"));
  report(watched("/b", cookies_["/b"].front()));
  EXPECT_EQ(error_of(0), "read-only");
  EXPECT_EQ(error_of(1), "");
}

TEST_F(WatchedDrivesTest, DriveThatIsReportedAsNotWatched_IsNotWaitedFor) {
  report(failing("/a", "overlayfs"));
  synchronise();
  EXPECT_EQ(error_of(0), "overlayfs");
  report(watched("/a"));
  synchronise();
  EXPECT_FALSE(*results_);
  report(failing("/a", "it was unmounted"));
  EXPECT_EQ(error_of(0), "it was unmounted");
}

// A disk that was slow for a while costs a scan some seconds, not a walk.
TEST_F(WatchedDrivesTest, DriveWithoutReportForAWhile_IsWaitedFor) {
  report(watched("/a"));
  pass(seconds(100));
  synchronise();
  EXPECT_FALSE(*results_);
  report(watched("/a", cookies_["/a"].front()));
  EXPECT_EQ(error_of(0), "");
}

TEST_F(WatchedDrivesTest, UnknownDrive_IsAnError) {
  synchronise({"/unknown"});
  EXPECT_THAT(error_of(0), HasSubstr("restart"));
  EXPECT_FALSE(watched_.report(watched("/unknown")));
}

TEST_F(WatchedDrivesTest, Stop_EndsTheWait) {
  synchronise();
  watched_.stop();
  settle();
  ASSERT_TRUE(*results_);
  EXPECT_NE(error_of(0), "");
}

TEST_F(WatchedDrivesTest, States_NameWhatIsNotWatchedAndSinceWhen) {
  const auto started = clock_.wall_now();
  pass(seconds(2));
  report(watched("/b"));
  EXPECT_THAT(watched_.health_errors(), ElementsAre("/a is not watched: spoor-watch has not reported yet"));
  EXPECT_EQ(watched_.states()[0].failing_since, started);
  EXPECT_FALSE(watched_.states()[0].reported_at);
  const auto failing_since = clock_.wall_now();
  report(failing("/b", "the daemon refuses its marks"));
  pass(seconds(2));
  report(failing("/b", "it was unmounted"));
  EXPECT_EQ(watched_.states()[1].failing_since, failing_since);
  EXPECT_EQ(watched_.states()[1].error, "it was unmounted");
  pass(seconds(20));
  EXPECT_THAT(watched_.states()[0].error, HasSubstr("is it started?"));
}

TEST_F(WatchedDrivesTest, DriveThatIsNotReportedAnyMore_IsNotWatchedSinceThen) {
  report(watched("/a"));
  report(watched("/b"));
  EXPECT_THAT(watched_.health_errors(), IsEmpty());
  const auto last = clock_.wall_now();
  pass(WatchedDrives::silence_max);
  report(watched("/b"));
  EXPECT_THAT(watched_.health_errors(), IsEmpty());
  pass(seconds(1));
  EXPECT_THAT(watched_.health_errors(),
              ElementsAre(HasSubstr("/a is not watched: spoor-watch last reported at")));
  EXPECT_EQ(watched_.states()[0].failing_since, last);
  report(watched("/a"));
  EXPECT_THAT(watched_.health_errors(), IsEmpty());
}

TEST_F(WatchedDrivesTest, DrivesThatAreNotToBeWatched_HaveNoState) {
  watched_.set_watched({"/c"});
  EXPECT_THAT(watched_.health_errors(), ElementsAre(HasSubstr("/c is not watched")));
  watched_.set_watched({});
  EXPECT_THAT(watched_.states(), IsEmpty());
}

}  // namespace
}  // namespace spoor::daemon
