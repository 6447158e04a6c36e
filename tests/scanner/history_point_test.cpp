#include "scanner/history/history_point.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/support/random.h"

namespace spoor::scanner {
namespace {

using ::testing::ElementsAre;
using Change = UsageGrowth::Change;

constexpr std::int64_t hour = 3'600;
constexpr std::int64_t day = 24 * hour;
constexpr std::int64_t start = 20'000 * day;  // 2024-10-04

HistoryPoint point(std::int64_t at, std::uint64_t bytes = 0, HistoryEvent event = HistoryEvent::none,
                   std::string from = "") {
  return {at, {.files = 1, .dirs = 2, .bytes = bytes, .allocated = bytes * 2}, event, std::move(from)};
}

HistoryPoint gone(std::int64_t at) { return {at, {}, HistoryEvent::deleted}; }

std::vector<std::int64_t> times(const HistoryPoints& points) {
  std::vector<std::int64_t> found;
  for (const HistoryPoint& each : points) found.push_back(each.at);
  return found;
}

HistoryPoints thinned(const std::vector<std::int64_t>& at) {
  HistoryPoints points;
  for (const std::int64_t each : at) points.push_back(point(each));
  thin_out(points);
  return points;
}

// `count` times, the newest `now`.
std::vector<std::int64_t> times_every(std::int64_t step, std::int64_t count, std::int64_t now) {
  std::vector<std::int64_t> found;
  for (std::int64_t number = count; number > 0; --number) found.push_back(now - (number - 1) * step);
  return found;
}

TEST(HistoryPointTest, Newest72Hours_KeepTheLastPointOfEach) {
  const std::int64_t now = start + 100 * day + hour - 1;
  auto kept = times_every(hour, 72, now);
  auto at = kept;
  for (std::size_t number = 0; number < kept.size(); ++number)
    at.insert(at.begin() + static_cast<std::ptrdiff_t>(2 * number), kept[number] - 10);
  kept.insert(kept.begin(), at.front());
  EXPECT_EQ(times(thinned(at)), kept) << "with the first one";
}

TEST(HistoryPointTest, BeforeThose_TheLastPointOfEachMonthStays) {
  const std::int64_t now = start + 500 * day + hour - 1;
  const auto days = times_every(day, 90, start + 497 * day - 1);
  const auto hours = times_every(hour, 72, now);
  // 2024-10-30, -31, 2024-11-01, -30, 2024-12-01.
  std::vector<std::int64_t> at{
      start, start + 26 * day, start + 27 * day, start + 28 * day, start + 57 * day, start + 58 * day};
  std::vector<std::int64_t> kept{start, start + 27 * day, start + 57 * day, start + 58 * day};
  for (auto* const list : {&at, &kept}) {
    list->insert(list->end(), days.begin(), days.end());
    list->insert(list->end(), hours.begin(), hours.end());
  }
  EXPECT_EQ(times(thinned(at)), kept);
}

TEST(HistoryPointTest, RarePoints_AreKeptHoweverOldTheyAre) {
  const auto at = times_every(400 * hour, 72, start);
  EXPECT_EQ(times(thinned(at)), at);
}

TEST(HistoryPointTest, ThinnedAtEachPoint_EqualsThinnedOnce) {
  SPOOR_RANDOM(random);
  HistoryPoints all;
  HistoryPoints kept;
  std::int64_t at = start;
  for (int count = 0; count < 3'000; ++count) {
    at += 1 + static_cast<std::int64_t>(random.below(random.one_in(10) ? 20 * hour : hour));
    all.push_back(point(at, random.below(1'000)));
    append_point(kept, all.back());
    thin_out(kept);
    ASSERT_LE(kept.size(), 72U + 90U + 12U);
  }
  thin_out(all);
  EXPECT_EQ(kept, all);
}

TEST(HistoryPointTest, DroppedPoint_LeavesItsEventToTheNext) {
  HistoryPoints points{point(start), point(start + day, 1, HistoryEvent::recreated),
                       point(start + day + 1, 2), point(start + 9 * day)};
  thin_out(points);
  ASSERT_THAT(times(points), ElementsAre(start, start + day + 1, start + 9 * day));
  EXPECT_EQ(points[1].event, HistoryEvent::recreated);
}

TEST(HistoryPointTest, DroppedAtTheBound_ADirectoryIsNotNew) {
  const HistoryPoints points{point(start), gone(start + 40 * day),
                             point(start + 80 * day, 100, HistoryEvent::created),
                             point(start + 120 * day, 300)};
  HistoryPoints kept = points;
  thin_out_to(kept, 2);
  ASSERT_THAT(times(kept), ElementsAre(start + 80 * day, start + 120 * day));
  const auto growth = growth_since(kept, start, start, kept.back().figures);
  EXPECT_EQ(growth->change, Change::grown);
  EXPECT_EQ(growth->bytes, 200);
  kept = {points.begin() + 2, points.end()};
  thin_out_to(kept, 2);
  EXPECT_EQ(growth_since(kept, start, start, kept.back().figures)->change, Change::created)
      << "nothing was dropped";
}

TEST(HistoryPointTest, PointOfAnEarlierTime_ReplacesLaterOnes) {
  HistoryPoints points{point(start), point(start + 10, 1, HistoryEvent::renamed, "old"),
                       point(start + 20, 2)};
  append_point(points, point(start + 5, 3));
  EXPECT_EQ(points, (HistoryPoints{point(start), point(start + 5, 3, HistoryEvent::renamed, "old")}));
  append_point(points, point(start + 5, 4));
  EXPECT_EQ(points.back(), point(start + 5, 4, HistoryEvent::renamed, "old"));
}

TEST(HistoryPointTest, Merge_KeepsWhatHappened) {
  using Event = HistoryEvent;
  const auto merged = [](Event earlier, Event later) {
    HistoryPoint result = point(start, 0, later, later == Event::renamed ? "second" : "");
    merge_event(result, point(start, 0, earlier, earlier == Event::renamed ? "first" : ""));
    return std::pair(result.event, result.from);
  };
  const auto is = [](Event event, std::string from = "") { return std::pair(event, std::move(from)); };
  EXPECT_EQ(merged(Event::none, Event::renamed), is(Event::renamed, "second"));
  EXPECT_EQ(merged(Event::renamed, Event::renamed), is(Event::renamed, "first"));
  EXPECT_EQ(merged(Event::renamed, Event::recreated), is(Event::recreated));
  EXPECT_EQ(merged(Event::renamed, Event::deleted), is(Event::deleted));
  EXPECT_EQ(merged(Event::created, Event::renamed), is(Event::created));
  EXPECT_EQ(merged(Event::created, Event::deleted), is(Event::deleted));
  EXPECT_EQ(merged(Event::deleted, Event::created), is(Event::recreated));
  EXPECT_EQ(merged(Event::recreated, Event::none), is(Event::recreated));
}

TEST(HistoryPointTest, Encoded_IsDecoded) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const HistoryPoints points{
      {-5, {0, 0, 0, 0}, HistoryEvent::created},
      {start, {most, most, most, most}, HistoryEvent::none},
      {start + 1, {0, 1, 2, 3}, HistoryEvent::renamed, std::string("\0\xff/b", 4)},
      {start + 2, {1, 1, 1, 1}, HistoryEvent::renamed, "a", false},
      {start + 3, {1, 1, 1, 1}, HistoryEvent::none, "", false, true},
      {std::numeric_limits<std::int64_t>::max(), {7, 1ULL << 63U, 0, most}, HistoryEvent::deleted}};
  const std::string bytes = encode_points(points);
  EXPECT_EQ(decode_points(bytes), points);
  EXPECT_EQ(decode_newest(bytes), points.back());
  EXPECT_EQ(decode_points(""), HistoryPoints());
}

TEST(HistoryPointTest, DamagedBytes_AreRefused) {
  SPOOR_RANDOM(random);
  const std::string bytes =
      encode_points({point(start, 5), point(start + hour, 1, HistoryEvent::renamed, "from")});
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    const auto decoded = decode_points(std::string_view(bytes).substr(0, size));
    EXPECT_LT(decoded.value_or(HistoryPoints()).size(), 2U);
  }
  for (int count = 0; count < 20'000; ++count) {
    std::string damaged = bytes;
    for (std::uint64_t changes = random.between(1, 4); changes > 0; --changes)
      damaged[random.below(damaged.size())] = random.byte();
    const auto decoded = decode_points(damaged);
    if (!decoded) continue;
    for (std::size_t number = 1; number < decoded->size(); ++number)
      ASSERT_LT((*decoded)[number - 1].at, (*decoded)[number].at);
  }
}

TEST(HistoryPointTest, Growth_ComparesWithTheNewestPointOfThen) {
  const HistoryPoints points{point(start, 100), point(start + day, 300), point(start + 2 * day, 250)};
  const HistoryFigures now = points.back().figures;
  const auto growth = growth_since(points, start + day + hour, start, now);
  ASSERT_TRUE(growth);
  EXPECT_EQ(growth->bytes, -50);
  EXPECT_EQ(growth->allocated, -100);
  EXPECT_EQ(growth->since, wall_time(start + day));
  EXPECT_EQ(growth->change, Change::grown);
  EXPECT_EQ(growth_since(points, start - day, start, now)->bytes, 150) << "with the first known point";
  EXPECT_EQ(growth_since(points, start - day, start, now)->since, wall_time(start));
  EXPECT_FALSE(growth_since({}, start, start, now));
}

TEST(HistoryPointTest, Growth_OfADirectoryCreatedLater_IsAllOfIt) {
  const HistoryPoints points{point(start + day, 100, HistoryEvent::created), point(start + 2 * day, 250)};
  const auto growth = growth_since(points, start + hour, start, points.back().figures);
  ASSERT_TRUE(growth);
  EXPECT_EQ(growth->bytes, 250);
  EXPECT_EQ(growth->files, 1);
  EXPECT_EQ(growth->change, Change::created);
  EXPECT_EQ(growth->since, wall_time(start + hour));
  EXPECT_EQ(growth_since(points, start - day, start, points.back().figures)->since, wall_time(start))
      << "before, nothing is known";
}

TEST(HistoryPointTest, Growth_SinceIncompleteTotals_IsNotComplete) {
  HistoryPoints points{point(start, 100), point(start + 10, 200), point(start + 20, 300)};
  points[1].complete = false;
  EXPECT_TRUE(growth_since(points, start, start, points.back().figures)->complete);
  EXPECT_FALSE(growth_since(points, start + 10, start, points.back().figures)->complete);
  auto sum = *growth_since(points, start, start, points.back().figures);
  sum.add(*growth_since(points, start + 10, start, points.back().figures));
  EXPECT_FALSE(sum.complete);
}

TEST(HistoryPointTest, Growth_OfADeletedDirectory_IsNegative) {
  const HistoryPoints points{point(start, 100), gone(start + day)};
  const auto growth = growth_since(points, start, start, std::nullopt);
  ASSERT_TRUE(growth);
  EXPECT_EQ(growth->bytes, -100);
  EXPECT_EQ(growth->dirs, -2);
  EXPECT_EQ(growth->change, Change::deleted);
  EXPECT_FALSE(growth_since(points, start + day, start, std::nullopt)) << "it was deleted before";
}

TEST(HistoryPointTest, Growth_NamesWhatHappenedSinceThen) {
  const auto change = [](const HistoryPoints& points, std::int64_t since) {
    return growth_since(points, since, start, points.back().figures)->change;
  };
  const HistoryPoints replaced{point(start, 1), point(start + 10, 2, HistoryEvent::recreated),
                               point(start + 20, 3)};
  EXPECT_EQ(change(replaced, start), Change::recreated);
  EXPECT_EQ(change(replaced, start + 10), Change::grown);
  const HistoryPoints back{point(start, 1), gone(start + 10), point(start + 20, 3, HistoryEvent::created)};
  EXPECT_EQ(change(back, start), Change::recreated);
  EXPECT_EQ(change(back, start + 10), Change::created);
  const HistoryPoints moved{point(start, 1), point(start + 10, 2, HistoryEvent::renamed, "first"),
                            point(start + 20, 2, HistoryEvent::renamed, "second")};
  const auto growth = growth_since(moved, start, start, moved.back().figures);
  EXPECT_EQ(growth->change, Change::renamed);
  EXPECT_EQ(growth->from, "first") << "its name then";
}

TEST(HistoryPointTest, HugeGrowth_IsClamped) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  constexpr std::int64_t clamp = std::numeric_limits<std::int64_t>::max();
  const HistoryPoints points{point(start, 0)};
  auto up = *growth_since(points, start, start, HistoryFigures{.bytes = most});
  EXPECT_EQ(up.bytes, clamp);
  up.add(up);
  EXPECT_EQ(up.bytes, clamp);
  const HistoryPoints full{{start, {.files = 0, .dirs = 0, .bytes = most, .allocated = most}}};
  auto down = *growth_since(full, start, start, HistoryFigures());
  EXPECT_EQ(down.bytes, -clamp);
  down.add(down);
  EXPECT_EQ(down.bytes, -clamp);
}

}  // namespace
}  // namespace spoor::scanner
