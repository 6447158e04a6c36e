// The totals of one directory over time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace spoor::scanner {

// What happened to the directory when a point was recorded, apart from a change of its totals.
enum class HistoryEvent : std::uint8_t {
  none = 0,
  created = 1,
  deleted = 2,    // its totals are zero until it is created again
  recreated = 3,  // another directory has its name now
  renamed = 4,    // it was moved here; the points before are of its former name
};

struct HistoryFigures {
  std::uint64_t files = 0;
  std::uint64_t dirs = 0;
  std::uint64_t bytes = 0;
  std::uint64_t allocated = 0;

  friend bool operator==(const HistoryFigures&, const HistoryFigures&) = default;
};

// The totals of a directory from `at` on, until its next point.
struct HistoryPoint {
  static constexpr std::size_t from_bytes_max = 1024;

  std::int64_t at = 0;  // seconds since 1970, UTC
  HistoryFigures figures;
  HistoryEvent event = HistoryEvent::none;
  std::string from = {};  // the former path, if it was renamed and the path is not too long
  // Whether no part of it, on any drive, was unread: otherwise the totals are partly older or too small.
  bool complete = true;
  // It, or a directory above it except the root of a drive, was unread on some drive: what it contains was
  // not known. Then it is not complete.
  bool unread = false;

  bool is_there() const { return event != HistoryEvent::deleted; }

  friend bool operator==(const HistoryPoint&, const HistoryPoint&) = default;
};

// Oldest first; the times increase.
using HistoryPoints = std::vector<HistoryPoint>;

// Whole seconds: a scan has that precision in its history.
std::int64_t history_time(base::WallTime time);
base::WallTime wall_time(std::int64_t at);

// Adds to `later` what happened up to `earlier`, which is dropped.
void merge_event(HistoryPoint& later, HistoryPoint earlier);

// Appends the point. Points that are not older than it are of a clock that was ahead, and are merged into it.
void append_point(HistoryPoints& points, HistoryPoint point);

// Keeps the last point of each hour, of the newest 72 hours that have points; before, that of each day, of
// the newest 90 days that have points; before, that of each month, all in UTC. Always keeps the first and the
// last point.
void thin_out(HistoryPoints& points);

// To shrink it further: keeps one point of each month, and then no more than the newest `count_max` points,
// at least one.
void thin_out_to(HistoryPoints& points, std::size_t count_max);

std::string encode_points(const HistoryPoints& points);
// Nothing if they are damaged.
std::optional<HistoryPoints> decode_points(std::string_view bytes);
// Only the newest one. Nothing if there is none.
std::optional<HistoryPoint> decode_newest(std::string_view bytes);

// The difference of the totals of a directory now and at an earlier time; at the end of their range if it is
// larger.
struct UsageGrowth {
  enum class Change {
    grown,      // or shrunk, or the same
    created,    // it did not exist then
    deleted,    // it no longer exists
    recreated,  // another directory has had its name since then
    renamed,    // moved here; against what it was under its former name
  };

  std::int64_t files = 0;
  std::int64_t dirs = 0;
  std::int64_t bytes = 0;
  std::int64_t allocated = 0;
  base::WallTime since{};  // when the totals were these
  Change change = Change::grown;
  std::string from = {};  // of one that was renamed: its path then, if it is known
  bool complete = true;   // HistoryPoint::complete of the totals then

  // Adds the figures; keeps the later time: the history of one may begin later than that of the other.
  void add(const UsageGrowth& other);

  friend bool operator==(const UsageGrowth&, const UsageGrowth&) = default;
};

// How a directory has changed since then. `now` are its totals, nothing if it no longer exists.
// `recorded_since` is when the history of all directories begins. Nothing without points, or for a directory
// that existed neither then nor now. If its history begins later, and not with its creation, its first point
// is compared.
std::optional<UsageGrowth> growth_since(const HistoryPoints& points, std::int64_t since,
                                        std::int64_t recorded_since,
                                        const std::optional<HistoryFigures>& now);

}  // namespace spoor::scanner
