#include "tracker/cycles/history_span.h"

#include <limits>
#include <optional>
#include <utility>

namespace spoor::tracker {
namespace {

// Whether the newest level holds clearly more items than it is sized for: the next level could not be opened.
bool is_saturated(const MarkSet& marks, const LevelSchedule& levels) {
  const BloomFilter* newest = nullptr;
  std::optional<std::size_t> newest_level;
  for (const BloomFilter& filter : marks.filters()) {
    const auto level = levels.level_of(filter.shape());
    if (!level || level < newest_level) continue;
    newest = &filter;
    newest_level = level;
  }
  if (newest == nullptr) return false;
  constexpr double clearly = 1.05;
  return FilterFigures::of(*newest).items > clearly * levels.items_max(*newest_level);
}

// What reading the marks once more costs a scan, in items. A mark on the root costs it a full walk.
double weight(const HistorySpan& span) {
  constexpr double items_of_tree = 100;  // a guess
  constexpr double items_of_all = 1e12;
  return span.figures.filter.items + items_of_tree * static_cast<double>(span.figures.tree_marks) +
         (span.covers_all ? items_of_all : 0);
}

}  // namespace

HistorySpan HistorySpan::of(CycleId last, std::shared_ptr<const MarkSet> marks, const LevelSchedule& levels) {
  HistorySpan span{.last = last, .view = nullptr, .marks = std::move(marks), .figures = {}};
  const MarkSet& its = *span.marks;
  span.figures = {.filter = MarkSetFigures::of(its),
                  .levels = its.filters().size(),
                  .tree_marks = its.tree_marks().size(),
                  .saturated = is_saturated(its, levels)};
  span.memory_bytes = its.filter_bytes();
  span.covers_all = its.tree_marks().covers("");
  return span;
}

std::shared_ptr<const MarkSet> HistorySpan::get() const {
  return marks != nullptr ? marks : std::make_shared<const MarkSet>(view->copy());
}

const TreeMarks::Members& HistorySpan::members() const {
  return marks != nullptr ? marks->tree_marks().members() : view->trees().members();
}

bool HistorySpan::may_contain(std::string_view path, const PathHash& hash) const {
  return marks != nullptr ? marks->may_contain(path, hash) : view->may_contain(path, hash);
}

HistorySpan merge_spans(const HistorySpan& older, const HistorySpan& later, const LevelSchedule& levels) {
  MarkSet marks = *older.get();
  marks.merge(*later.get());
  HistorySpan merged = HistorySpan::of(later.last, std::make_shared<const MarkSet>(marks.packed()), levels);
  // The filter of a level may be half as full again as that of one cycle (level_with_room()).
  merged.figures.saturated = older.figures.saturated || later.figures.saturated;
  return merged;
}

// A cursor within the result makes a scan read all of it, beside all that is newer, which it has to read
// anyway: the pair is chosen for which the ratio is least. So spans grow with their age, as in an exponential
// histogram (Datar et al. 2002). A mark on the root, of a gap, thus stays the end of its span: scans that
// have walked it do not meet it again.
std::size_t span_to_merge(std::span<const HistorySpan> history) {
  std::size_t best = history.size() - 2;
  double least = std::numeric_limits<double>::infinity();
  double newer = 1;
  for (std::size_t older = history.size() - 1; older-- > 0;) {
    const HistorySpan& later = history[older + 1];
    const double ratio = (weight(history[older]) + later.figures.filter.items) / newer;
    if (ratio < least) {
      least = ratio;
      best = older;
    }
    newer += weight(later);
  }
  return best;
}

std::size_t level_with_room(std::span<const HistorySpan> history, const LevelSchedule& levels) {
  MarkSet all;
  for (const HistorySpan& span : history) all.merge(*span.get());
  std::size_t level = 0;
  for (; level < levels.last(); ++level) {
    const BloomFilter* const merged = all.filter_of(levels.shape(level));
    if (merged == nullptr || FilterFigures::of(*merged).items <= levels.items_max(level) / 2) break;
  }
  return level;
}

}  // namespace spoor::tracker
