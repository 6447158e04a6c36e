#include "base/clock.h"

#include <gtest/gtest.h>

namespace spoor::base {
namespace {

TEST(IsoTimeTest, FormattedTime_ParsesBackToTheSecond) {
  for (const std::int64_t seconds :
       {0LL, 1LL, -1LL, 951'782'400LL, 1'700'000'000LL, 9'223'372'036LL, -9'223'372'036LL}) {
    const WallTime time{std::chrono::seconds(seconds)};
    EXPECT_EQ(parse_iso_time(iso_time(time)), time) << iso_time(time);
  }
}

TEST(IsoTimeTest, MalformedText_DoesNotParse) {
  for (const char* text :
       {"", "2026-11-23", "2026-11-23T00:00:00", "2026-11-23T00:00:00Z ", "2026-13-23T00:00:00Z",
        "9999-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "now", " 2026-01-03T07:09:01Z", "2026-1-3T7:9:1Z"}) {
    EXPECT_EQ(parse_iso_time(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace spoor::base
