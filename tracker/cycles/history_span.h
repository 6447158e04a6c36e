// The closed cycles of a tracker, as it keeps them (docs/filters.md, "Spans").
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "tracker/cycles/ids.h"
#include "tracker/filter/hash.h"
#include "tracker/filter/level_schedule.h"
#include "tracker/filter/live_marks.h"
#include "tracker/filter/mark_set.h"

namespace spoor::tracker {

// What is known of a set of marks without a lookup in it.
struct CycleFigures {
  MarkSetFigures filter;
  std::size_t levels = 0;
  std::size_t tree_marks = 0;
  bool saturated = false;  // holds more items than its filters are sized for
};

// Consecutive cycles, up to `last`: `view` directly after a cycle was closed, `marks` once it is packed. Its
// marks never change, so they are shared, not copied.
struct HistorySpan {
  CycleId last;
  std::shared_ptr<const LiveMarks::View> view;
  std::shared_ptr<const MarkSet> marks;
  CycleFigures figures;            // of the marks
  std::uint64_t memory_bytes = 0;  // of its filters
  bool covers_all = false;         // by a mark on the root; false until it is packed

  // From marks that are packed, or will not be.
  static HistorySpan of(CycleId last, std::shared_ptr<const MarkSet> marks, const LevelSchedule& levels);

  std::shared_ptr<const MarkSet> get() const;
  const TreeMarks::Members& members() const;
  bool may_contain(std::string_view path, const PathHash& hash) const;
};

// The span of both.
HistorySpan merge_spans(const HistorySpan& older, const HistorySpan& later, const LevelSchedule& levels);

// Which of the spans, oldest first, to merge with the one after it. There must be two at least.
std::size_t span_to_merge(std::span<const HistorySpan> history);

// The level at which the next cycle is to start, so that a merge of the whole history stays selective: the
// first level of which the filter merged from all spans is at most half full.
std::size_t level_with_room(std::span<const HistorySpan> history, const LevelSchedule& levels);

}  // namespace spoor::tracker
