// Publishes the change feed of one node to one sink: a consumer of the feed.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "publish/batch.h"
#include "publish/sink.h"
#include "scanner/feed/consumers.h"
#include "scanner/feed/publish_record.h"
#include "scanner/store/usage_database.h"

namespace spoor::publish {

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
  struct Part {
    Batch batch;
    scanner::FeedEntry last;  // of the batch
  };
  // A range, or a part of it, that is being read.
  struct Reading {
    Part part;
    Part deferred;  // published before it, and perhaps not stored yet; none of `part` depends on it
    bool is_partial = false;
    base::Result<> outcome = {};  // of the last batch that was published
    // Not of the query, which may take long before its first entry.
    std::optional<base::SteadyTime> ends_at = {};
  };

  base::Result<> publish_feed(const std::function<bool()>& should_stop);
  bool is_within_a_range() const;
  bool has_files() const;
  base::Result<> start_over(scanner::UsageDatabase& database, scanner::Consumers& consumers);
  base::Result<> publish_reset(scanner::Consumers& consumers);
  base::Result<> publish_range(scanner::UsageDatabase& database, scanner::Consumers& consumers,
                               const std::function<bool()>& should_stop);
  base::Result<> pass(Reading& reading, scanner::Consumers& consumers,
                      const std::function<bool()>& should_stop);
  base::Result<> settle(Reading& reading, scanner::Consumers& consumers);
  base::Result<> move_past(Part& stored, scanner::Consumers& consumers);
  base::Result<> move_past_first(const Part& part, std::size_t count, scanner::Consumers& consumers);
  base::Result<> move_behind(const scanner::FeedEntry& last, std::size_t events,
                             scanner::Consumers& consumers);
  base::Result<> finish_range(scanner::UsageDatabase& database, scanner::Consumers& consumers);
  base::Result<> store_totals(scanner::UsageDatabase& database, std::uint64_t latest);
  // A single event, on which others depend.
  base::Result<> publish(const Event& event);
  base::Result<> count_failure(base::Result<> outcome);
  // In which a batch is published.
  std::size_t parts() const { return sink_.defers() && options_.batch_events_max > 1 ? 2 : 1; }
  // After these events of the sink.
  base::Result<> commit(scanner::Consumers& consumers, std::size_t events = 0);
  void note_position();

  const Options options_;
  Sink& sink_;
  const base::Clock& clock_;
  Source source_;
  scanner::Consumer consumer_;
  std::uint64_t totals_scan_ = 0;  // whose totals are stored
  mutable std::mutex mutex_;       // of the figures
  scanner::SinkFigures figures_;
};

}  // namespace spoor::publish
