#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tracker/level_schedule.h"
#include "tracker/live_filter.h"
#include "tracker/mark_set.h"

namespace spoor::tracker {

// The marks of the current cycle while they are made: filters that many threads add to side by side, and
// tree marks. New marks go to the newest level; a lookup asks all filters.
//
// Thread-safe, but for open(), add_tree(), bound_trees(), view() and clear(): no other thread may be in any
// function then.
class LiveMarks {
 public:
  // What it holds, for reading on while marks go on: the filters themselves, and the tree marks as they were.
  class View {
   public:
    bool may_contain(std::string_view path, const PathHash& hash) const;
    bool empty() const { return filters_.empty() && trees_->empty(); }

    // At least what was there when the view was taken.
    MarkSet copy() const;

   private:
    friend class LiveMarks;
    std::vector<std::shared_ptr<const LiveFilter>> filters_;
    std::shared_ptr<const TreeMarks> trees_;
  };

  LiveMarks() = default;

  // The last filter is the one that new marks go to, if it is of the schedule, or in any case for a replay.
  LiveMarks(const MarkSet& marks, const LevelSchedule& levels, bool is_replay);

  // Whether some filter may contain the path of this hash.
  bool knows(const PathHash& hash) const {
    return !filters_.empty() && (filters_.back()->may_contain(hash) || older_know(hash));
  }

  // How many of the first of them it knows, up to the first that it does not.
  std::size_t knows_first(std::span<const PathHash> hashes) const {
    if (filters_.empty()) return 0;
    // The newest filter first: what is marked now is usually there.
    const LiveFilter& newest = *filters_.back();
    std::size_t known = newest.may_contain_first(hashes);
    while (known < hashes.size() && older_know(hashes[known])) {
      ++known;
      known += newest.may_contain_first(hashes.subspan(known));
    }
    return known;
  }

  // Begins to fetch what lookups of this hash will read, from memory that is too large for the caches.
  void prefetch(const PathHash& hash) const {
    for (const auto& filter : filters_) filter->prefetch(hash, filter == filters_.back());
  }

  // What is not known, to the newest level, which must be there: the first is unknown, of the others some may
  // be known. Returns how many bits were new, to be counted by the caller.
  std::uint64_t add(std::span<const PathHash> hashes) {
    std::uint64_t bits = filters_.back()->add(hashes.front());
    for (const PathHash& hash : hashes.subspan(1)) bits += older_know(hash) ? 0 : filters_.back()->add(hash);
    return bits;
  }
  void count_bits(std::uint64_t added) { filters_.back()->count_bits(added); }

  // Returns whether the tree was not covered before. It may be one more than the bounds of the tree marks
  // allow; bound_trees() returns the ancestors that it joined others to.
  bool add_tree(std::string_view path);
  std::vector<std::string> bound_trees(std::size_t bytes_max);
  const TreeMarks& trees() const { return *trees_; }
  bool trees_cover(std::string_view path) const { return trees_->covers(path); }

  // Whether there is a filter that new marks go to.
  bool takes_marks() const { return takes_marks_; }

  // The level that new marks go to; none where there is none, or one that is not of the schedule. The bits
  // counted in it.
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

  // The path itself, or something above or below it that concerns it.
  bool may_contain(std::string_view path, const PathHash& hash) const;

  std::uint64_t memory_bytes() const;
  std::size_t level_count() const { return filters_.size(); }

  // Counting, in the newest level, these bits as well.
  MarkSetFigures figures(std::uint64_t uncounted) const;

  View view() const;

  // Back to nothing.
  void clear();

 private:
  // Whether a filter other than the newest may contain it.
  bool older_know(const PathHash& hash) const {
    return std::any_of(filters_.begin(), filters_.end() - 1,
                       [&](const auto& filter) { return filter->may_contain(hash); });
  }

  TreeMarks& own_trees();

  std::vector<std::shared_ptr<LiveFilter>> filters_;  // the newest level last
  std::optional<std::size_t> newest_level_;
  bool takes_marks_ = false;
  std::shared_ptr<TreeMarks> trees_ = std::make_shared<TreeMarks>();
  mutable bool trees_lent_ = false;  // to a view: not to be changed any more
};

}  // namespace spoor::tracker
