#include "base/clock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

#include "tests/support/temp_directory.h"

namespace spoor::base {
namespace {

WallTime mtime_of(const std::filesystem::path& file) {
  struct stat status{};
  EXPECT_EQ(::stat(file.c_str(), &status), 0);
  return WallTime(std::chrono::seconds(status.st_mtim.tv_sec) +
                  std::chrono::nanoseconds(status.st_mtim.tv_nsec));
}

// Of a clock that were ahead, one in some hundred would be.
TEST(FileTimeClockTest, FileWrittenLater_HasNoEarlierMtime) {
  const support::TempDirectory directory;
  const FileTimeClock clock;
  for (int i = 0; i < 2'000; ++i) {
    const WallTime before = clock.wall_now();
    std::ofstream(directory / "file") << i;
    ASSERT_LE(before, mtime_of(directory / "file"));
  }
}

// fmt 9 prints the local time of a time_point.
TEST(IsoTimeTest, IsUtcInAnyTimeZone) {
  const char* const before = std::getenv("TZ");
  const std::string kept = before == nullptr ? "" : before;
  for (const char* zone : {"UTC", "NPT-5:45", "PST8PDT"}) {
    ::setenv("TZ", zone, 1);
    ::tzset();
    EXPECT_EQ(iso_time(WallTime(std::chrono::seconds(1'764'428'400))), "2025-11-29T15:00:00Z") << zone;
    EXPECT_EQ(parse_iso_time("2025-11-29T15:00:00Z"), WallTime(std::chrono::seconds(1'764'428'400))) << zone;
  }
  before == nullptr ? ::unsetenv("TZ") : ::setenv("TZ", kept.c_str(), 1);
  ::tzset();
}

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
