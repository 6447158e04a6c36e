#include "scanner/history/history_point.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/byte_codec.h"

namespace spoor::scanner {
namespace {

constexpr std::int64_t hour_s = 3'600;
constexpr std::int64_t day_s = 24 * hour_s;
constexpr std::size_t hours_kept = 72;
constexpr std::size_t days_kept = 90;
constexpr std::size_t names_kept = 8;  // former paths in the points of one directory

std::int64_t divide_down(std::int64_t value, std::int64_t by) {
  return value / by - (value % by < 0 ? 1 : 0);
}

std::int64_t month_of(std::int64_t at) {
  const std::chrono::year_month_day date(std::chrono::sys_days(std::chrono::days(divide_down(at, day_s))));
  return static_cast<int>(date.year()) * std::int64_t{12} + static_cast<unsigned>(date.month());
}

// Of the points in the same one, the last is kept.
using Bucket = std::pair<int, std::int64_t>;

// Of each point. Buckets are counted, newest first: which points stay depends neither on when the others were
// removed, nor on how far a wrong clock is ahead.
std::vector<Bucket> buckets_of(const HistoryPoints& points) {
  std::vector<Bucket> buckets(points.size());
  Bucket last{-1, 0};
  std::size_t count = 0;
  for (std::size_t number = points.size(); number > 0; --number) {
    const std::int64_t at = points[number - 1].at;
    Bucket bucket{std::max(last.first, 0), 0};
    const auto set_time = [&] {
      bucket.second = bucket.first == 0   ? divide_down(at, hour_s)
                      : bucket.first == 1 ? divide_down(at, day_s)
                                          : month_of(at);
    };
    set_time();
    if (bucket != last) {
      const bool is_over =
          (bucket.first == 0 && count == hours_kept) || (bucket.first == 1 && count == days_kept);
      if (is_over) {
        ++bucket.first;
        set_time();
        count = 0;
      }
      ++count;
    }
    buckets[number - 1] = last = bucket;
  }
  return buckets;
}

// The event of a point for all that happened in it and in the one before.
HistoryEvent merged(HistoryEvent earlier, HistoryEvent later) {
  if (earlier == HistoryEvent::none || later == HistoryEvent::deleted) return later;
  if (earlier == HistoryEvent::deleted) return HistoryEvent::recreated;
  if (earlier == HistoryEvent::renamed && later == HistoryEvent::recreated) return later;
  return earlier;
}

// Keeps the first point, and the last of each bucket.
void keep_last_of_each(HistoryPoints& points, const std::vector<Bucket>& buckets) {
  HistoryPoints kept;
  for (std::size_t number = 0; number < points.size(); ++number) {
    const bool is_end = number == 0 || number + 1 == points.size();
    if (is_end || buckets[number] != buckets[number + 1]) {
      kept.push_back(std::move(points[number]));
    } else {
      merge_event(points[number + 1], std::move(points[number]));
    }
  }
  points = std::move(kept);
}

// Added to the number of the event: once if the point is not complete, twice if it is also unread.
constexpr std::uint64_t unread_step = 8;

// Reads what encode_points() wrote, the newest point first.
class PointReader {
 public:
  explicit PointReader(std::string_view bytes) : in_(bytes) {}

  // Nothing at the end, or if the bytes are damaged.
  std::optional<HistoryPoint> next() {
    if (!is_ok_ || in_.remaining() == 0) return std::nullopt;
    HistoryPoint point;
    point.at = static_cast<std::int64_t>(difference(static_cast<std::uint64_t>(newer_.at)));
    point.figures = {difference(newer_.figures.files), difference(newer_.figures.dirs),
                     difference(newer_.figures.bytes), difference(newer_.figures.allocated)};
    read_event(point, in_.number());
    if (point.event == HistoryEvent::renamed) point.from = text();
    is_ok_ = is_ok_ && in_.ok() && (is_first_ || point.at < newer_.at);
    if (!is_ok_) return std::nullopt;
    is_first_ = false;
    newer_ = point;
    return point;
  }

  bool is_ok() const { return is_ok_; }

 private:
  void read_event(HistoryPoint& point, std::uint64_t number) {
    const std::uint64_t event = number % unread_step;
    const std::uint64_t steps = number / unread_step;
    is_ok_ = is_ok_ && event <= static_cast<std::uint64_t>(HistoryEvent::renamed) && steps <= 2;
    if (!is_ok_) return;
    point.event = static_cast<HistoryEvent>(event);
    point.complete = steps == 0;
    point.unread = steps == 2;
  }

  std::uint64_t difference(std::uint64_t newer) { return newer - in_.difference(); }

  std::string text() {
    const std::uint64_t size = in_.number();
    is_ok_ = is_ok_ && size <= HistoryPoint::from_bytes_max;
    return std::string(is_ok_ ? in_.raw(size) : std::string_view());
  }

  base::ByteReader in_;
  HistoryPoint newer_;
  bool is_first_ = true;
  bool is_ok_ = true;
};

std::int64_t signed_difference(std::uint64_t now, std::uint64_t then) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return now >= then ? static_cast<std::int64_t>(std::min(now - then, most))
                     : -static_cast<std::int64_t>(std::min(then - now, most));
}

void add_saturating(std::int64_t& sum, std::int64_t other) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (__builtin_add_overflow(sum, other, &sum)) sum = other > 0 ? most : -most;
}

UsageGrowth::Change change_of(HistoryEvent since_then, bool was_there, bool is_there) {
  if (!is_there) return UsageGrowth::Change::deleted;
  if (!was_there) return UsageGrowth::Change::created;
  if (since_then == HistoryEvent::renamed) return UsageGrowth::Change::renamed;
  return since_then == HistoryEvent::none ? UsageGrowth::Change::grown : UsageGrowth::Change::recreated;
}

}  // namespace

std::int64_t history_time(base::WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

base::WallTime wall_time(std::int64_t at) {
  constexpr auto most =
      std::chrono::floor<std::chrono::seconds>(base::WallTime::max()).time_since_epoch().count() - 1;
  return base::WallTime(std::chrono::seconds(std::clamp(at, -most, most)));
}

void merge_event(HistoryPoint& later, HistoryPoint earlier) {
  const HistoryEvent both = merged(earlier.event, later.event);
  if (both != HistoryEvent::renamed) {
    later.from.clear();
  } else if (earlier.event == HistoryEvent::renamed) {
    later.from = std::move(earlier.from);
  }
  later.event = both;
}

void append_point(HistoryPoints& points, HistoryPoint point) {
  for (; !points.empty() && points.back().at >= point.at; points.pop_back())
    merge_event(point, std::move(points.back()));
  points.push_back(std::move(point));
}

void thin_out(HistoryPoints& points) {
  keep_last_of_each(points, buckets_of(points));
  std::size_t names = 0;
  for (std::size_t number = points.size(); number > 0; --number) {
    HistoryPoint& point = points[number - 1];
    if (!point.from.empty() && ++names > names_kept) point.from.clear();
  }
}

void thin_out_to(HistoryPoints& points, std::size_t count_max) {
  if (points.size() > count_max) {
    std::vector<Bucket> months;
    for (const HistoryPoint& point : points) months.emplace_back(0, month_of(point.at));
    keep_last_of_each(points, months);
  }
  const std::size_t kept = std::clamp<std::size_t>(count_max, 1, points.size());
  if (kept == points.size()) return;
  points.erase(points.begin(), points.end() - static_cast<std::ptrdiff_t>(kept));
  // What is dropped was of the directory, too.
  if (points.front().event == HistoryEvent::created) points.front().event = HistoryEvent::none;
}

std::string encode_points(const HistoryPoints& points) {
  base::ByteWriter out;
  HistoryPoint newer;
  const auto put = [&](std::uint64_t before, std::uint64_t value) { out.difference(before - value); };
  for (std::size_t number = points.size(); number > 0; --number) {
    const HistoryPoint& point = points[number - 1];
    put(static_cast<std::uint64_t>(newer.at), static_cast<std::uint64_t>(point.at));
    put(newer.figures.files, point.figures.files);
    put(newer.figures.dirs, point.figures.dirs);
    put(newer.figures.bytes, point.figures.bytes);
    put(newer.figures.allocated, point.figures.allocated);
    const std::uint64_t steps = point.complete ? 0 : point.unread ? 2 : 1;
    out.number(static_cast<std::uint64_t>(point.event) + steps * unread_step);
    if (point.event == HistoryEvent::renamed) {
      out.number(point.from.size());
      out.raw(point.from);
    }
    newer = point;
  }
  return out.take();
}

std::optional<HistoryPoints> decode_points(std::string_view bytes) {
  PointReader reader(bytes);
  HistoryPoints points;
  while (auto point = reader.next()) points.push_back(*std::move(point));
  if (!reader.is_ok()) return std::nullopt;
  std::ranges::reverse(points);
  return points;
}

std::optional<HistoryPoint> decode_newest(std::string_view bytes) { return PointReader(bytes).next(); }

void UsageGrowth::add(const UsageGrowth& other) {
  add_saturating(files, other.files);
  add_saturating(dirs, other.dirs);
  add_saturating(bytes, other.bytes);
  add_saturating(allocated, other.allocated);
  since = std::max(since, other.since);
  complete = complete && other.complete;
}

std::optional<UsageGrowth> growth_since(const HistoryPoints& points, std::int64_t since,
                                        std::int64_t recorded_since,
                                        const std::optional<HistoryFigures>& now) {
  if (points.empty()) return std::nullopt;
  const auto after = std::ranges::upper_bound(points, since, {}, &HistoryPoint::at);
  auto base = after == points.begin() ? points.end() : after - 1;
  const bool begins_later = base == points.end();
  if (begins_later && points.front().event != HistoryEvent::created) base = points.begin();
  const bool was_there = base != points.end() && base->is_there();
  if (!was_there && !now) return std::nullopt;
  HistoryPoint last;
  for (auto point = base == points.end() ? points.begin() : base + 1; point != points.end(); ++point) {
    HistoryPoint next = *point;
    merge_event(next, std::move(last));
    last = std::move(next);
  }
  const HistoryFigures then = was_there ? base->figures : HistoryFigures();
  const HistoryFigures to = now.value_or(HistoryFigures());
  UsageGrowth growth;
  growth.files = signed_difference(to.files, then.files);
  growth.dirs = signed_difference(to.dirs, then.dirs);
  growth.bytes = signed_difference(to.bytes, then.bytes);
  growth.allocated = signed_difference(to.allocated, then.allocated);
  growth.since = wall_time(base == points.end() ? std::max(since, recorded_since) : base->at);
  growth.complete = base == points.end() || base->complete;
  growth.change = change_of(last.event, was_there, now.has_value());
  if (growth.change == UsageGrowth::Change::renamed) growth.from = std::move(last.from);
  return growth;
}

}  // namespace spoor::scanner
