#include "config/units.h"

#include <gmock/gmock.h>

#include <random>

namespace spoor::config {
namespace {

using std::chrono::milliseconds;

TEST(DurationTest, EveryUnit_IsParsed) {
  EXPECT_EQ(parse_duration("30d").value(), std::chrono::hours(24 * 30));
  EXPECT_EQ(parse_duration("12h").value(), std::chrono::hours(12));
  EXPECT_EQ(parse_duration("5m").value(), std::chrono::minutes(5));
  EXPECT_EQ(parse_duration("10s").value(), std::chrono::seconds(10));
  EXPECT_EQ(parse_duration("250ms").value(), milliseconds(250));
  EXPECT_EQ(parse_duration("0s").value(), milliseconds(0));
}

TEST(DurationTest, MalformedDuration_IsRefused) {
  for (const std::string_view bad :
       {"", "5", "m", "5 m", " 5m", "5m ", "-5m", "+5m", "1.5h", "1h30m", "5M", "5min", "0x5s", "5ns"}) {
    const auto parsed = parse_duration(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, std::errc::invalid_argument);
    EXPECT_THAT(parsed.error().message,
                ::testing::HasSubstr("is not a duration: expected a whole number and a unit"));
  }
}

TEST(DurationTest, Overflow_IsAnError) {
  EXPECT_EQ(parse_duration("9223372036854775807ms").value().count(),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_duration("9223372036854775808ms").error().message,
            R"("9223372036854775808ms" is too large for a duration)");
  EXPECT_FALSE(parse_duration("106751991168d"));
  EXPECT_FALSE(parse_duration("99999999999999999999999s"));
}

TEST(DurationTest, Format_IsShortestExactForm) {
  EXPECT_EQ(format_duration(milliseconds(0)), "0s");
  EXPECT_EQ(format_duration(milliseconds(1)), "1ms");
  EXPECT_EQ(format_duration(milliseconds(1500)), "1500ms");
  EXPECT_EQ(format_duration(milliseconds(60'000)), "1m");
  EXPECT_EQ(format_duration(milliseconds(90'000)), "90s");
  EXPECT_EQ(format_duration(std::chrono::hours(36)), "36h");
  EXPECT_EQ(format_duration(std::chrono::hours(48)), "2d");
}

TEST(SizeTest, EveryUnit_IsParsed) {
  EXPECT_EQ(parse_size("100B").value(), 100U);
  EXPECT_EQ(parse_size("512KiB").value(), 512U << 10U);
  EXPECT_EQ(parse_size("8MiB").value(), 8U << 20U);
  EXPECT_EQ(parse_size("1GiB").value(), 1U << 30U);
  EXPECT_EQ(parse_size("2TiB").value(), 2ULL << 40U);
  EXPECT_EQ(parse_size("3KB").value(), 3'000U);
  EXPECT_EQ(parse_size("3MB").value(), 3'000'000U);
  EXPECT_EQ(parse_size("3GB").value(), 3'000'000'000U);
  EXPECT_EQ(parse_size("1048576").value(), 1'048'576U);
  EXPECT_EQ(parse_size("0").value(), 0U);
}

TEST(SizeTest, MalformedSize_IsRefused) {
  for (const std::string_view bad : {"", "B", "8M", "8mib", "8 MiB", "-1", "1.5GiB", "1e6", "8MiB8", "8BB"}) {
    EXPECT_FALSE(parse_size(bad)) << bad;
  }
}

TEST(SizeTest, Overflow_IsAnError) {
  EXPECT_EQ(parse_size("18446744073709551615").value(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(parse_size("18446744073709551616"));
  EXPECT_TRUE(parse_size("16777215TiB"));
  EXPECT_FALSE(parse_size("16777216TiB"));
}

TEST(SizeTest, Format_IsShortestExactForm) {
  EXPECT_EQ(format_size(0), "0B");
  EXPECT_EQ(format_size(500), "500B");
  EXPECT_EQ(format_size(1024), "1KiB");
  EXPECT_EQ(format_size(8ULL << 20U), "8MiB");
  EXPECT_EQ(format_size(1'000'000), "1MB");
  EXPECT_EQ(format_size(1'048'577), "1048577B");
}

TEST(UnitsTest, FormatAndParse_RoundTrips) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    std::uint64_t value = random() >> (random() % 64);
    if (i % 2 == 0) value -= value % 86'400'000;
    EXPECT_EQ(parse_size(format_size(value)).value(), value);
    const milliseconds duration(static_cast<std::int64_t>(value >> 1U));
    EXPECT_EQ(parse_duration(format_duration(duration)).value(), duration);
  }
}

TEST(UnitsTest, Since_IsADurationBackOrATime) {
  const base::WallTime now(std::chrono::hours(24 * 365));
  EXPECT_EQ(parse_since("24h", now).value(), now - std::chrono::hours(24));
  EXPECT_EQ(parse_since("0s", now).value(), now);
  EXPECT_EQ(parse_since("1970-01-01T00:00:07Z", now).value(), base::WallTime(std::chrono::seconds(7)));
  EXPECT_EQ(parse_since("9223372036854775807ms", now).value(), base::WallTime()) << "clamped";
  EXPECT_EQ(parse_since("yesterday", now).value(), now - std::chrono::hours(24));
  EXPECT_EQ(parse_since("1970-01-02", now).value(), base::WallTime(std::chrono::hours(24)));
  EXPECT_FALSE(parse_since("2030-01-01", now));
  for (const char* const text : {"", "24", "tomorrow", "-1h", "1970-13-01", "1970-01-1"})
    EXPECT_FALSE(parse_since(text, now)) << text;
}

}  // namespace
}  // namespace spoor::config
