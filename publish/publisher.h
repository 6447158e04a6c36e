// Publishes the change feed of one node to one sink: a consumer of the feed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "publish/sink.h"
#include "scanner/feed/consumers.h"
#include "scanner/feed/publish_record.h"

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

// A batch is published, acknowledged by the sink, and then the consumer moves past it, durably. After a crash
// at any moment, at most the last batch is published again, with the same ids. To a sink that defers, half a
// batch is published while the other half is acknowledged. To one that takes several requests for a batch,
// only the requests that are not acknowledged are repeated after a failure.
//
// Not thread-safe, but for figures().
class Publisher {
 public:
  struct Options {
    std::string name;  // of the sink
    std::string cluster;
    std::string node;
    std::filesystem::path data_dir;
    std::size_t batch_events_max = 10'000;  // that are not known to be stored
    bool publishes_existing = true;         // after a reset
    std::uint64_t totals_depth = 2;         // of directories whose totals are stored, if the sink takes them
    // While it is read, the database log grows: the changes are read in transactions of this length.
    std::chrono::seconds read_max{60};
  };

  static std::string consumer_of(const std::string& sink) { return "publish:" + sink; }

  // The sink and the clock must outlive it.
  Publisher(Options options, Sink& sink, const base::Clock& clock);

  // Publishes all that scans have found up to now. Returns at the first failure, and soon, with success, once
  // `should_stop` returns true. May be called again after either.
  base::Result<> publish_all(const std::function<bool()>& should_stop);

  scanner::SinkFigures figures() const;

 private:
  class Run;

  base::Result<> publish_feed(const std::function<bool()>& should_stop);

  const Options options_;
  Sink& sink_;
  const base::Clock& clock_;
  std::uint64_t totals_scan_ = 0;  // whose totals are stored
  mutable std::mutex mutex_;       // of the figures
  scanner::SinkFigures figures_;
};

}  // namespace spoor::publish
