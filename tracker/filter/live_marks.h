#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tracker/filter/level_schedule.h"
#include "tracker/filter/live_filter.h"
#include "tracker/filter/mark_set.h"

namespace spoor::tracker {

// That the record of a mark is counted in the tracker's position. Another mark that finds the bits of this
// one adds nothing, and waits for the position that it reads then: so the record must be counted before the
// bits are set. Only a tracker makes one.
class Counted {
 public:
  std::uint64_t position() const { return position_; }  // after the record

 private:
  friend class Tracker;
  explicit Counted(std::uint64_t position) : position_(position) {}

  std::uint64_t position_;
};

// The marks of the current cycle: filters that many threads add to concurrently, and tree marks. New marks go
// to the newest level; a lookup reads all filters.
//
// Thread-safe, except open(), add_tree(), bound_trees(), view() and clear(), which need exclusive access.
class LiveMarks {
 public:
  // For reading while marking continues: shares the filters, and has the tree marks as of view().
  class View {
   public:
    bool may_contain(std::string_view path, const PathHash& hash) const;
    bool empty() const { return filters_.empty() && trees_->empty(); }
    const TreeMarks& trees() const { return *trees_; }

    // Holds at least what was marked before view().
    MarkSet copy() const;

   private:
    friend class LiveMarks;
    std::vector<std::shared_ptr<const LiveFilter>> filters_;
    std::shared_ptr<const TreeMarks> trees_;
  };

  // New marks go to the last filter if its shape is in the schedule, and always in a replay.
  LiveMarks(const MarkSet& marks, const LevelSchedule& levels, bool is_replay);

  // Whether some filter may contain the path of this hash.
  bool knows(const PathHash& hash) const {
    return !filters_.empty() && (filters_.back()->may_contain(hash) || older_know(hash));
  }

  // The number of leading hashes that are known, up to the first that is not.
  std::size_t knows_first(std::span<const PathHash> hashes) const {
    if (filters_.empty()) return 0;
    // The newest filter first: it usually holds the paths that are marked now.
    const LiveFilter& newest = *filters_.back();
    std::size_t known = newest.may_contain_first(hashes);
    while (known < hashes.size() && older_know(hashes[known])) {
      ++known;
      known += newest.may_contain_first(hashes.subspan(known));
    }
    return known;
  }

  // Prefetches what lookups of this hash read: the filters are larger than the processor's caches.
  void prefetch(const PathHash& hash) const {
    for (const auto& filter : filters_) filter->prefetch(hash, filter == filters_.back());
  }

  // Adds the hashes that are not known to the newest level, which must exist. The first hash must be unknown.
  // Returns the number of new bits, for count_bits().
  std::uint64_t add(std::span<const PathHash> hashes, const Counted& /*before_the_bits*/) {
    std::uint64_t bits = filters_.back()->add(hashes.front());
    for (const PathHash& hash : hashes.subspan(1)) bits += older_know(hash) ? 0 : filters_.back()->add(hash);
    return bits;
  }
  void count_bits(std::uint64_t added) { filters_.back()->count_bits(added); }

  // Returns whether the tree was not covered before. The tree marks may then exceed a bound by one;
  // bound_trees() joins them and returns the ancestors that they were joined to.
  bool add_tree(std::string_view path);
  std::vector<std::string> bound_trees();
  const TreeMarks& trees() const { return *trees_; }

  // Whether there is a filter for new marks.
  bool takes_marks() const { return takes_marks_; }

  // The level for new marks, nullopt if there is none or its shape is not in the schedule; and its counted
  // bits.
  std::optional<std::size_t> newest_level() const { return newest_level_; }
  std::uint64_t bits_in_newest() const { return filters_.back()->bits_counted(); }

  // Makes a level the newest one.
  void open(std::optional<std::size_t> level, std::shared_ptr<LiveFilter> filter) {
    filters_.push_back(std::move(filter));
    newest_level_ = level;
    takes_marks_ = true;
  }

  bool has(BloomShape shape) const;
  bool has_newest(BloomShape shape) const { return !filters_.empty() && filters_.back()->shape() == shape; }

  // Whether a filter may contain the path, or a tree mark is at, above or below it.
  bool may_contain(std::string_view path, const PathHash& hash) const;

  std::uint64_t memory_bytes() const;
  std::size_t level_count() const { return filters_.size(); }

  // `uncounted`: bits of the newest level that count_bits() was not called for yet.
  MarkSetFigures figures(std::uint64_t uncounted) const;

  View view() const;

  void clear();

 private:
  // Whether an older filter may contain it.
  bool older_know(const PathHash& hash) const {
    return std::any_of(filters_.begin(), filters_.end() - 1,
                       [&](const auto& filter) { return filter->may_contain(hash); });
  }

  TreeMarks& own_trees();

  std::vector<std::shared_ptr<LiveFilter>> filters_;  // the newest level last
  std::optional<std::size_t> newest_level_;
  bool takes_marks_ = false;
  std::shared_ptr<TreeMarks> trees_ = std::make_shared<TreeMarks>();
  mutable bool trees_lent_ = false;  // to a view: copied before the next change
};

}  // namespace spoor::tracker
