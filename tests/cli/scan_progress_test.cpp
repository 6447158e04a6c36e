#include "cli/scan/scan_walk.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fakes/manual_clock.h"

namespace spoor::cli {
namespace {

using namespace std::chrono_literals;
using Form = ScanProgress::Form;

scanner::Progress progress(std::uint64_t walked, std::uint64_t done, std::uint64_t known) {
  scanner::Progress told;
  told.figures.dirs_walked = walked;
  told.dirs_done = done;
  told.dirs_known = known;
  return told;
}

TEST(ScanProgressTest, Progress_ShowsSpeedAndTimeLeft) {
  EXPECT_EQ(progress_text(progress(12'000, 50'000, 200'000), 10s),
            "12,000 directories read, 1,200/s; 25 %, 30.0 s left");
}

TEST(ScanProgressTest, UnknownTotalOrSpeed_ShowsNoTimeLeft) {
  EXPECT_EQ(progress_text(progress(12'000, 12'000, 0), 10s), "12,000 directories read, 1,200/s");
  EXPECT_EQ(progress_text(progress(12'000, 12'000, 11'000), 10s), "12,000 directories read, 1,200/s");
  EXPECT_EQ(progress_text(progress(0, 0, 11'000), 10s), "0 directories read, 0/s");
  EXPECT_EQ(progress_text(progress(5, 5, 10), 0s), "5 directories read");
}

class ScanProgressLinesTest : public ::testing::Test {
 protected:
  ScanProgress told_as(Form form) {
    return ScanProgress(clock, form, [this](std::string_view text) { written.emplace_back(text); });
  }

  fakes::ManualClock clock;
  std::vector<std::string> written;
};

TEST_F(ScanProgressLinesTest, Terminal_HasOneLineErasedAtTheEnd) {
  ScanProgress lines = told_as(Form::terminal);
  for (int step = 0; step < 10; ++step) {
    lines.report(progress(100, 100, 0));
    clock.advance(100ms);
  }
  lines.end();
  lines.end();
  ASSERT_EQ(written.size(), 5U);
  EXPECT_EQ(written.front(), "\r100 directories read, 500/s\x1b[K");
  EXPECT_EQ(written.back(), "\r\x1b[K");
}

TEST_F(ScanProgressLinesTest, Log_HasOneLineAMinute) {
  ScanProgress lines = told_as(Form::log);
  for (int second = 0; second <= 150; ++second) {
    lines.report(progress(600, 600, 0));
    clock.advance(1s);
  }
  lines.end();
  EXPECT_EQ(written, (std::vector<std::string>{"spoor: 600 directories read, 10/s\n",
                                               "spoor: 600 directories read, 5/s\n"}));
}

}  // namespace
}  // namespace spoor::cli
