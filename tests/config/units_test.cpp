#include "config/units.h"

#include <gmock/gmock.h>

#include "tests/support/random.h"

namespace spoor::config {
namespace {

using std::chrono::milliseconds;

TEST(DurationTest, EveryUnit_IsParsedAndFormattedInTheShortestForm) {
  for (const auto& [text, duration] : {std::pair{"30d", milliseconds(std::chrono::hours(24 * 30))},
                                       {"2d", std::chrono::hours(48)},
                                       {"36h", std::chrono::hours(36)},
                                       {"5m", std::chrono::minutes(5)},
                                       {"90s", std::chrono::seconds(90)},
                                       {"1500ms", milliseconds(1500)},
                                       {"0s", milliseconds(0)}}) {
    EXPECT_EQ(parse_duration(text).value(), duration);
    EXPECT_EQ(format_duration(duration), text);
  }
  EXPECT_EQ(parse_duration("60000ms").value(), std::chrono::minutes(1));
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

TEST(SizeTest, EveryUnit_IsParsedAndFormattedInTheShortestForm) {
  for (const auto& [text, bytes] : {std::pair{"500B", std::uint64_t{500}},
                                    {"512KiB", 512U << 10U},
                                    {"8MiB", 8U << 20U},
                                    {"1GiB", 1U << 30U},
                                    {"2TiB", 2ULL << 40U},
                                    {"3KB", 3'000U},
                                    {"3MB", 3'000'000U},
                                    {"3GB", 3'000'000'000U},
                                    {"3TB", 3'000'000'000'000U},
                                    {"1048577B", 1'048'577U},
                                    {"0B", 0U}}) {
    EXPECT_EQ(parse_size(text).value(), bytes);
    EXPECT_EQ(format_size(bytes), text);
  }
  EXPECT_EQ(parse_size("1048576").value(), 1'048'576U) << "bytes";
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

TEST(UnitsTest, FormatAndParse_RoundTrips) {
  SPOOR_RANDOM(random);
  for (int i = 0; i < 20'000; ++i) {
    std::uint64_t value = random.next() >> random.below(64);
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
