#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/process/log_limit.h"
#include "daemon/process/reload.h"

namespace spoor::daemon {
namespace {

using std::chrono::seconds;

TEST(LogLimitTest, EventsOfOneKey_AreLoggedOnceAMinuteWithACount) {
  LogLimit limit;
  const base::SteadyTime start{};
  EXPECT_EQ(limit.note("a", 1, start), 1U);
  EXPECT_EQ(limit.note("a", 5, start + seconds(1)), std::nullopt);
  EXPECT_EQ(limit.note("b", 2, start + seconds(1)), 2U);
  EXPECT_EQ(limit.note("a", 1, start + seconds(59)), std::nullopt);
  EXPECT_EQ(limit.note("a", 1, start + seconds(60)), 7U);
  EXPECT_EQ(limit.note("a", 1, start + seconds(61)), std::nullopt);
}

TEST(LogLimitTest, KeysBeyondTheLimit_CountAsOne) {
  LogLimit limit;
  std::uint64_t lines = 0;
  std::uint64_t events = 0;
  base::SteadyTime now{};
  const auto note = [&](const std::string& key) {
    const auto noted = limit.note(key, 1, now);
    lines += noted ? 1U : 0U;
    events += noted.value_or(0);
  };
  for (int i = 0; i < 10'000; ++i) note(std::to_string(i));
  EXPECT_EQ(lines, LogLimit::keys_max + 1);
  now += LogLimit::pause;
  for (std::size_t i = 0; i < LogLimit::keys_max; ++i) note("later " + std::to_string(i));
  note("one more");
  EXPECT_EQ(lines, 2 * (LogLimit::keys_max + 1));
  EXPECT_EQ(events, 10'000 + LogLimit::keys_max + 1) << "none is lost";
}

class ReloadedSettingsTest : public testing::Test {
 protected:
  Reload reload_{config::Config(),
                 {{{"log.level"}, [this](const config::Config&) { return ++applied_, is_accepted_; }},
                  {{"watch.drives"}, [this](const config::Config&) { return ++applied_, true; }}}};
  bool is_accepted_ = true;
  int applied_ = 0;
};

TEST_F(ReloadedSettingsTest, SettingRefused_ReloadHasFailedAndTheOthersAreApplied) {
  is_accepted_ = false;
  reload_.apply(config::Config());
  EXPECT_TRUE(reload_.failed());
  EXPECT_EQ(applied_, 2);
  is_accepted_ = true;
  reload_.apply(config::Config());
  EXPECT_FALSE(reload_.failed());
}

TEST_F(ReloadedSettingsTest, InvalidFile_ReloadHasFailedAndNothingIsApplied) {
  reload_.apply(base::Error(std::make_error_code(std::errc::invalid_argument), "no JSON"));
  EXPECT_TRUE(reload_.failed());
  EXPECT_EQ(applied_, 0);
}

}  // namespace
}  // namespace spoor::daemon
