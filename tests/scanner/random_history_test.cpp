// 200 days of scans of random changes. A naive copy of the history, by the documented rules, follows each
// scan from an independent walk; growth has to be the same for any time.

#include <gtest/gtest.h>

#include <ctime>
#include <map>
#include <ostream>
#include <set>

#include "tests/scanner/history_node.h"
#include "tests/support/random.h"
#include "tests/support/sanitizer.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

using Change = UsageGrowth::Change;
using Event = HistoryEvent;

constexpr std::int64_t day = 86'400;
constexpr int days = support::is_sanitized ? 60 : 200;

bool is_below(const std::string& path, const std::string& above) {
  return path == above || path.starts_with(above + "/");
}

std::string text_of(std::int64_t at, const char* format) {
  const std::time_t time = at;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, format, &parts);
  return text;
}

HistoryFigures figures_of(const Measured& measured) {
  return {measured.files, measured.dirs, measured.bytes, measured.allocated};
}

// What a history has to hold of one directory.
struct Series {
  HistoryPoints points;
  std::vector<HistoryPoint> all;  // for the events: nothing is thinned

  bool is_there() const { return !points.empty() && points.back().is_there(); }

  void add(const HistoryPoint& point) {
    append_point(points, point);
    append_point(all, point);
    // The last point of each of 72 hours stays, then of each of 90 days, then of each month; and the first.
    struct Kind {
      const char* format;
      std::size_t count_max;
      std::set<std::string> seen = {};
    };
    std::vector<Kind> kinds{{"%Y-%m-%d %H", 72}, {"%Y-%m-%d", 90}, {"%Y-%m", 1'000}};
    HistoryPoints kept;
    for (std::size_t i = points.size(); i > 0; --i) {
      const HistoryPoint& each = points[i - 1];
      Kind* kind = &kinds.front();
      if (kind->seen.size() == kind->count_max && !kind->seen.contains(text_of(each.at, kind->format))) {
        if (kinds.size() > 1) kinds.erase(kinds.begin());
        kind = &kinds.front();
      }
      if (kind->seen.insert(text_of(each.at, kind->format)).second || i == 1) kept.insert(kept.begin(), each);
    }
    points = kept;
  }
};

class RandomHistoryTest : public HistoryNode, public ::testing::WithParamInterface<bool> {
 protected:
  RandomHistoryTest()
      : HistoryNode(GetParam() ? std::vector<std::string>{"one", "two"} : std::vector<std::string>{"one"}) {
    options.history.prefixes = {"a/b/c", "d/e/f"};
  }

  bool keeps(const std::string& path) const {
    const auto depth = path.empty() ? 0 : 1 + std::count(path.begin(), path.end(), '/');
    return depth <= 2 || path == "a/b/c" || path == "d/e/f";
  }

  std::vector<std::string> directories() const {
    std::vector<std::string> found;
    for (const auto& [path, measured] : measure(drive_paths())) {
      if (!path.empty()) found.push_back(path);
    }
    return found;
  }
  std::size_t some_drive() { return random_.below(options.drives.size()); }
  std::string some_directory() {
    const auto all = directories();
    return all.empty() ? "" : random_.pick(all);
  }
  bool was_removed(const std::string& path) const {
    return std::ranges::any_of(removed_, [&](const std::string& each) { return is_below(path, each); });
  }

  void create() {
    std::string path = some_directory();
    for (std::uint64_t depth = random_.between(1, 3); depth > 0; --depth)
      path = tracker::join_path(path, random_.letters(1, 'f'));
    if (was_removed(path)) return;
    const std::size_t number = some_drive();
    std::error_code in_the_way;
    std::filesystem::create_directories(on_drive(path, number), in_the_way);
    mark(path);
  }

  void write() {
    const std::string path = tracker::join_path(some_directory(), "file-" + random_.letters(1, 'c'));
    if (was_removed(path)) return;
    const std::size_t number = some_drive();
    if (std::filesystem::exists(on_drive(path, number)) &&
        std::filesystem::hard_link_count(on_drive(path, number)) > 1)
      return;
    if (!std::filesystem::exists(on_drive(path, number).parent_path())) return;
    write_file(on_drive(path, number), random_.below(100'000));
    mark(path, tracker::MarkKind::file);
  }

  void link() {
    const std::string from = some_directory();
    const std::string to = some_directory();
    const std::size_t number = some_drive();
    if (was_removed(from) || was_removed(to) || !std::filesystem::exists(on_drive(from, number)) ||
        !std::filesystem::exists(on_drive(to, number)))
      return;
    for (const auto& entry : std::filesystem::directory_iterator(on_drive(from, number))) {
      if (!entry.is_regular_file()) continue;
      const std::string name = tracker::join_path(to, "link-" + std::to_string(++fresh_));
      std::filesystem::create_hard_link(entry.path(), on_drive(name, number));
      mark(from);
      mark(name, tracker::MarkKind::file);
      return;
    }
  }

  // Through one of its names only.
  void resize_linked() {
    const std::string path = some_directory();
    const std::size_t number = some_drive();
    if (was_removed(path) || !std::filesystem::exists(on_drive(path, number))) return;
    for (const auto& entry : std::filesystem::directory_iterator(on_drive(path, number))) {
      if (!entry.is_regular_file() || entry.hard_link_count() < 2) continue;
      std::filesystem::resize_file(entry.path(), random_.below(100'000));
      mark(path);
      resized_ = true;
      return;
    }
  }

  void remove_one() {
    const std::string path = some_directory();
    if (path.empty()) return;
    // The size of a linked file is found under a name that is still there.
    if (resized_) return;
    // On one drive only: whether it was another one there can't be seen.
    for (const std::string& recreated : recreated_) {
      if (is_below(recreated, path)) return;
    }
    const bool everywhere = random_.one_in(2);
    for (std::size_t number = 0; number < options.drives.size(); ++number) {
      if (everywhere || number == 0) std::filesystem::remove_all(on_drive(path, number));
    }
    removed_.insert(path);
    mark(path);
  }

  // Another directory takes the name, on all drives.
  void recreate() {
    const std::string path = some_directory();
    if (path.empty() || was_removed(path) || resized_) return;
    for (std::size_t number = 0; number < options.drives.size(); ++number) {
      if (!std::filesystem::exists(on_drive(path, number))) continue;
      const auto aside = drive(number) / ".spoor" / "aside";
      std::filesystem::create_directories(aside);
      write_file(aside / "fresh", random_.below(1'000));
      std::filesystem::remove_all(on_drive(path, number));
      std::filesystem::rename(aside, on_drive(path, number));
    }
    removed_.insert(path);
    recreated_.insert(path);
    mark(path, tracker::MarkKind::tree);
  }

  // Last in a round. A name that never was.
  void rename_one() {
    const std::string from = some_directory();
    if (from.empty() || was_removed(from) || recreated_.contains(from)) return;
    const std::string below = random_.one_in(2) ? std::string(tracker::parent_path(from)) : some_directory();
    if (is_below(below, from) || was_removed(below)) return;
    for (const std::string& removed : removed_) {
      if (is_below(removed, from)) return;
    }
    const std::string to = tracker::join_path(below, "moved-" + std::to_string(++fresh_));
    for (std::size_t number = 0; number < options.drives.size(); ++number) {
      if (!std::filesystem::exists(on_drive(from, number))) continue;
      std::filesystem::create_directories(on_drive(to, number).parent_path());
      std::filesystem::rename(on_drive(from, number), on_drive(to, number));
    }
    mark(from);
    mark(to);
    renamed_ = {from, to};
  }

  void change() {
    removed_.clear();
    recreated_.clear();
    renamed_ = {};
    resized_ = false;
    using Self = RandomHistoryTest;
    const std::vector<void (Self::*)()> kinds = {
        &Self::remove_one, &Self::recreate, &Self::link,  &Self::resize_linked, &Self::create, &Self::create,
        &Self::create,     &Self::write,    &Self::write, &Self::write,         &Self::write,  &Self::write};
    for (std::uint64_t count = random_.below(8); count > 0; --count) (this->*random_.pick(kinds))();
    if (random_.one_in(6)) rename_one();
  }

  // What the scan at this time has to record.
  void follow(std::int64_t at) {
    follow_rename();
    auto found = measure(drive_paths());
    for (const auto& [path, series] : series_) found.try_emplace(path, Measured{.files = gone_files});
    for (const auto& [path, measured] : found) {
      if (keeps(path)) follow(path, at, measured);
    }
    is_first_ = false;
  }

  void follow_rename() {
    const auto& [from, to] = renamed_;
    // Where the former name had no history, the new one begins.
    if (from.empty() || !keeps(from) || !keeps(to) || !series_.contains(from) || !series_[from].is_there())
      return;
    std::map<std::string, Series> moved;
    for (auto series = series_.begin(); series != series_.end();) {
      const bool is_moved = is_below(series->first, from);
      const std::string path = is_moved ? to + series->first.substr(from.size()) : "";
      if (is_moved && keeps(path)) {
        if (series->second.is_there()) came_from_[path] = series->first;
        moved.emplace(path, std::move(series->second));
      }
      series = is_moved ? series_.erase(series) : std::next(series);
    }
    for (auto& [path, series] : moved) series_[path] = std::move(series);
  }

  void follow(const std::string& path, std::int64_t at, const Measured& measured) {
    Series& series = series_[path];
    const bool is_there = measured.files != gone_files;
    HistoryPoint point{at, figures_of(measured)};
    if (!is_there) {
      if (series.is_there()) series.add({at, {}, Event::deleted});
      if (series.points.empty()) series_.erase(path);
      came_from_.erase(path);
      return;
    }
    if (!series.is_there()) point.event = is_first_ ? Event::none : Event::created;
    if (series.is_there() && recreated_.contains(path)) point.event = Event::recreated;
    if (const auto moved = came_from_.extract(path); !moved.empty()) {
      point.event = Event::renamed;
      point.from = moved.mapped();
    }
    const bool is_same = series.is_there() && series.points.back().figures == point.figures;
    if (!is_same || point.event != Event::none) series.add(point);
  }

  std::optional<UsageGrowth> expected(const std::string& path, std::int64_t since,
                                      const std::optional<HistoryFigures>& now) {
    const auto known = series_.find(path);
    if (known == series_.end()) return std::nullopt;
    const Series& series = known->second;
    const HistoryPoint* base = nullptr;
    for (const HistoryPoint& point : series.points) {
      if (point.at <= since) base = &point;
    }
    if (base == nullptr && series.points.front().event != Event::created) base = &series.points.front();
    const bool was_there = base != nullptr && base->is_there();
    if (!was_there && !now) return std::nullopt;
    std::set<Event> events;
    UsageGrowth growth;
    for (const HistoryPoint& point : series.all) {
      if (base != nullptr && point.at <= base->at) continue;
      if (point.event == Event::renamed && !events.contains(Event::renamed)) growth.from = point.from;
      events.insert(point.event);
    }
    const bool is_another = events.contains(Event::recreated) || events.contains(Event::deleted) ||
                            events.contains(Event::created);
    growth.change = !now                              ? Change::deleted
                    : !was_there                      ? Change::created
                    : is_another                      ? Change::recreated
                    : events.contains(Event::renamed) ? Change::renamed
                                                      : Change::grown;
    if (growth.change != Change::renamed) growth.from.clear();
    const HistoryFigures zero;
    const HistoryFigures& then = was_there ? base->figures : zero;
    const HistoryFigures& to = now ? *now : zero;
    const auto difference = [](std::uint64_t a, std::uint64_t b) { return static_cast<std::int64_t>(a - b); };
    growth.files = difference(to.files, then.files);
    growth.dirs = difference(to.dirs, then.dirs);
    growth.bytes = difference(to.bytes, then.bytes);
    growth.allocated = difference(to.allocated, then.allocated);
    growth.since = wall_time(base != nullptr ? base->at : std::max(since, begin_));
    return growth;
  }

  void compare(std::int64_t since) {
    SCOPED_TRACE("since " + std::to_string(since));
    auto found = measure(drive_paths());
    std::map<std::string, std::optional<UsageGrowth>> wanted;
    for (const auto& [path, measured] : found) {
      wanted[path] = expected(path, since, figures_of(measured));
    }
    for (const auto& [path, series] : series_) {
      if (found.contains(path)) continue;
      const auto growth = expected(path, since, std::nullopt);
      const bool is_listed =
          std::string(path).empty() || wanted.contains(std::string(tracker::parent_path(path)));
      if (growth && is_listed) wanted[path] = growth;
    }
    const Usage usage = usage_since("", since, 100);
    std::map<std::string, std::optional<UsageGrowth>> got;
    for_each_entry(usage.total, [&](const UsageEntry& entry) { got[entry.path] = entry.growth; });
    for (const auto& [path, growth] : wanted) {
      ASSERT_TRUE(got.contains(path)) << path << " is not listed";
      ASSERT_EQ(got[path].has_value(), growth.has_value()) << path;
      if (!growth) continue;
      ASSERT_EQ(got[path]->bytes, growth->bytes) << path;
      ASSERT_EQ(got[path]->since, growth->since)
          << path << ' ' << got[path]->since.time_since_epoch().count();
      ASSERT_EQ(got[path]->change, growth->change) << path << ' ' << static_cast<int>(got[path]->change);
      ASSERT_EQ(got[path], growth) << path << " from " << got[path]->from << ", not " << growth->from;
    }
    for (const auto& [path, growth] : got) ASSERT_TRUE(wanted.contains(path)) << path << " is listed";
  }

  void expect_counts() {
    EXPECT_EQ(count("SELECT count(*) FROM history"), static_cast<std::int64_t>(last.history.paths));
    std::uint64_t points = 0;
    SqliteStatement query(database->handle(), "SELECT points FROM history");
    while (query.step()) points += decode_points(query.blob(0)).value().size();
    EXPECT_EQ(points, last.history.points);
  }

  // The times between scans: some minutes to some days.
  std::chrono::seconds some_time() {
    const std::int64_t most = random_.one_in(3) ? 2 * day : day / 4;
    return std::chrono::seconds(1 + random_.below(static_cast<std::uint64_t>(most)));
  }

  static constexpr std::uint64_t gone_files = std::numeric_limits<std::uint64_t>::max();

  support::Random random_;
  std::map<std::string, Series> series_;
  std::map<std::string, std::string> came_from_;
  std::set<std::string> removed_;
  std::set<std::string> recreated_;
  std::pair<std::string, std::string> renamed_;
  bool resized_ = false;
  bool is_first_ = true;
  std::int64_t begin_ = 0;
  std::uint64_t fresh_ = 0;
};

TEST_P(RandomHistoryTest, TwoHundredDays_GrowthEqualsOracle) {
  SCOPED_TRACE(random_.trace());
  begin_ = history_time(clock.wall_now());
  std::int64_t now = begin_;
  const std::int64_t end = now + days * day;
  for (int round = 0; now < end; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    change();
    if (random_.one_in(40)) clock.set_wall(clock.wall_now() - some_time() / 4);
    options.full = random_.one_in(50);
    if (random_.one_in(20)) reopen_database();
    now = scan_after(some_time());
    if (is_first_) begin_ = now;
    follow(now);
    if (round % 5 == 0) {
      const std::int64_t before = begin_ - day;
      compare(before +
              static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(now - before + 1))));
      compare(now - static_cast<std::int64_t>(random_.below(3 * day)));
      expect_counts();
    }
    if (HasFailure()) return;
  }
  for (const auto& [path, series] : series_) EXPECT_LE(points(path).size(), 72U + 90U + 8U + 1U) << path;
}

// The history only has to stay within its bounds, and what it holds newest has to be right.
TEST_P(RandomHistoryTest, SmallBounds_AreHeld) {
  SCOPED_TRACE(random_.trace());
  options.history.paths_max = 15;
  options.history.points_max = 60;
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    change();
    scan_after(some_time());
    ASSERT_LE(last.history.paths, 15U + 4U) << "those above the prefixes have no points";
    ASSERT_LE(last.history.points, 60U);
    expect_counts();
    for (const auto& [path, measured] : measure(drive_paths())) {
      const auto found = points(path);
      if (found.empty()) continue;
      ASSERT_EQ(found.back().figures, figures_of(measured)) << path;
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Drives, RandomHistoryTest, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "two" : "one"; });

}  // namespace
}  // namespace spoor::scanner
