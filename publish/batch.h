// Which events may be published before an acknowledgement is waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "publish/event.h"

namespace spoor::publish {

// Events of a walk in their order, of which none depends on another one: published again in whole or in part,
// in any order, they have the same effect. So nothing follows a reset, no other event of a deleted path
// follows its deletion, and nothing below a directory follows its replacement: a repetition of the first
// alone would undo the second.
//
// Not thread-safe.
class Batch {
 public:
  static constexpr std::size_t bytes_max = std::size_t{4} << 20U;  // of paths and ids

  // `events_max`: at least 1.
  explicit Batch(std::size_t events_max, std::size_t bytes = bytes_max)
      : events_max_(events_max), bytes_max_(bytes) {}

  // Whether the batch has to be published before this event is added.
  bool ends_before(const Event& event) const { return is_full() || !permits(event); }
  // Whether the event depends on none of the batch.
  bool permits(const Event& event) const;
  void add(Event event);

  std::span<const Event> events() const { return events_; }
  bool empty() const { return events_.empty(); }
  void clear();

 private:
  // An event with a part of its entry's path is the last: a read does not go on behind that path.
  bool is_full() const {
    return events_.size() >= events_max_ || bytes_ >= bytes_max_ ||
           (!events_.empty() && events_.back().is_deeper);
  }

  std::size_t events_max_;
  std::size_t bytes_max_;
  std::vector<Event> events_;
  std::size_t bytes_ = 0;
  std::unordered_set<std::string> deleted_;  // paths that an event of the batch deletes
  std::optional<std::string> replaced_;      // the last replaced directory
};

}  // namespace spoor::publish
