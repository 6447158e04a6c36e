#include "tracker/filter/level_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace spoor::tracker {
namespace {

TEST(LevelScheduleTest, LevelZero_IsMinioFilterShape) {
  const LevelSchedule levels(200'000, 0.1);
  EXPECT_EQ(levels.shape(0), (BloomShape{958'506, 4}));
  EXPECT_EQ(levels.items_max(0), 200'000);
}

TEST(LevelScheduleTest, EachLevel_DoublesItemsAndHalvesRate) {
  const LevelSchedule levels(200'000, 0.1);
  ASSERT_EQ(levels.last(), 8U);
  for (std::size_t level = 0; level <= levels.last(); ++level) {
    const auto items = static_cast<std::uint64_t>(levels.items_max(level));
    EXPECT_EQ(items, 200'000U << level);
    EXPECT_EQ(levels.shape(level),
              BloomShape::for_items(items, 0.1 / std::ldexp(1.0, static_cast<int>(level))));
    EXPECT_EQ(levels.level_of(levels.shape(level)), level);
  }
}

TEST(LevelScheduleTest, FullLevels_KeepTheirRateAndTheTotalBound) {
  const LevelSchedule levels(200'000, 0.1);
  double none_says_maybe = 1;
  for (std::size_t level = 0; level <= levels.last(); ++level) {
    const auto figures = FilterFigures::of(levels.shape(level), levels.bits_set_max(level));
    EXPECT_NEAR(figures.items, levels.items_max(level), 1e-3 * levels.items_max(level));
    // A whole number of hashes costs a little.
    EXPECT_LT(figures.fp_rate, 1.1 * std::ldexp(0.1, -static_cast<int>(level)));
    none_says_maybe *= 1 - figures.fp_rate;
  }
  EXPECT_LT(1 - none_says_maybe, levels.fp_rate_max());
}

TEST(LevelScheduleTest, ForeignShape_IsNotALevel) {
  const LevelSchedule levels(200'000, 0.1);
  EXPECT_EQ(levels.level_of({958'506, 5}), std::nullopt);
  EXPECT_EQ(levels.level_of({958'507, 4}), std::nullopt);
}

TEST(LevelScheduleTest, LevelFor_ReturnsSmallestThatHoldsItems) {
  const LevelSchedule levels(200'000, 0.1);
  EXPECT_EQ(levels.level_for(0), 0U);
  EXPECT_EQ(levels.level_for(200'000), 0U);
  EXPECT_EQ(levels.level_for(200'001), 1U);
  EXPECT_EQ(levels.level_for(1'600'000), 3U);
  EXPECT_EQ(levels.level_for(1e300), levels.last());
}

// What a scan reads of one node at a time has a bound (peer/http/http_transport.h).
TEST(LevelScheduleTest, AllLevelsTogether_FitInOneAnswer) {
  for (const std::uint64_t items : {std::uint64_t{1}, std::uint64_t{200'000}, std::uint64_t{20'000'000}}) {
    for (const double fp_rate : {1e-9, 0.1, 0.9}) {
      const LevelSchedule levels(items, fp_rate);
      std::uint64_t bytes = 0;
      for (std::size_t level = 0; level <= levels.last(); ++level) bytes += levels.shape(level).byte_count();
      EXPECT_LE(bytes, LevelSchedule::bytes_max) << items << ' ' << fp_rate;
    }
  }
}

TEST(LevelScheduleTest, ExtremeItemsAndRates_GiveValidGrowingLevels) {
  for (const std::uint64_t items : {std::uint64_t{1}, std::uint64_t{200'000'000}, ~std::uint64_t{0}}) {
    for (const double fp_rate : {1e-300, 1e-9, 0.1, 0.999999}) {
      const LevelSchedule levels(items, fp_rate);
      ASSERT_LE(levels.last(), LevelSchedule::level_max);
      for (std::size_t level = 0; level <= levels.last(); ++level) {
        const BloomShape shape = levels.shape(level);
        EXPECT_TRUE(BloomShape::checked(shape.bits, shape.hashes)) << items << ' ' << fp_rate;
        if (level == 0) continue;
        EXPECT_GT(shape.bits, levels.shape(level - 1).bits) << items << ' ' << fp_rate;
      }
    }
  }
}

}  // namespace
}  // namespace spoor::tracker
