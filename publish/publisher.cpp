#include "publish/publisher.h"

#include <utility>

#include "scanner/errors.h"
#include "scanner/store/usage_database.h"
#include "scanner/usage/usage_query.h"
#include "tracker/cycles/ids.h"

namespace spoor::publish {

bool Batch::permits(const Event& event) const {
  if (events_.empty()) return true;
  if (events_.back().kind == Event::Kind::reset || event.kind == Event::Kind::scan) return false;
  if (deleted_.contains(event.path)) return false;
  return !replaced_ || (!replaced_->empty() &&
                        !(event.path.starts_with(*replaced_) && event.path[replaced_->size()] == '/'));
}

void Batch::add(Event event) {
  bytes_ += sizeof event + event.path.size() + event.id.size();
  if (event.kind == Event::Kind::replaced && !event.is_file) replaced_ = event.path;
  if (event.kind == Event::Kind::replaced || event.kind == Event::Kind::deleted) deleted_.insert(event.path);
  events_.push_back(std::move(event));
}

void Batch::clear() {
  events_.clear();
  bytes_ = 0;
  deleted_.clear();
  replaced_.reset();
}

// One call of publish_all().
class Publisher::Run {
 public:
  Run(Publisher& publisher, scanner::UsageDatabase database, scanner::Consumers consumers, std::string feed,
      const std::function<bool()>& should_stop)
      : publisher_(publisher),
        options_(publisher.options_),
        sink_(publisher.sink_),
        clock_(publisher.clock_),
        source_{options_.cluster, options_.node, std::move(feed)},
        database_(std::move(database)),
        consumers_(std::move(consumers)),
        should_stop_(should_stop) {}

  base::Result<> publish_feed() {
    while (!should_stop_()) {
      const auto latest = scanner::latest_scan(database_);
      if (!latest) return latest.error();
      if (*latest == 0) return {};
      auto found = consumers_.find(consumer_of(options_.name));
      if (!found) return found.error();
      if (!*found || (*found)->feed_id != source_.feed || (*found)->scan > *latest) {
        if (auto started = start_over(); !started) return started;
      } else {
        consumer_ = **std::move(found);
      }
      note_position();
      if (!is_within_a_range() && consumer_.scan == *latest) return store_totals(*latest);
      base::Result<> published;
      if (!is_within_a_range()) {
        // Durably: after a crash the same changes make the same events.
        const bool has_files = consumer_.progress && consumer_.progress->files;
        consumer_.progress = {.until = *latest, .files = has_files};
        published = commit();
      }
      if (published) published = publish_range();
      if (!published && sink_.needs_reset()) published = start_over();
      if (!published && published.error().code != scanner::Errc::consumer_forgotten) return published;
    }
    return {};
  }

 private:
  struct Part {
    Batch batch;
    scanner::FeedEntry last = {};  // of the batch
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

  bool starts_over() const { return consumer_.progress && !consumer_.progress->start_over_id.empty(); }
  bool is_within_a_range() const {
    return starts_over() || (consumer_.progress && consumer_.progress->until > consumer_.scan);
  }
  // In which a batch is published.
  std::size_t parts() const { return sink_.defers() && options_.batch_events_max > 1 ? 2 : 1; }

  base::Result<> start_over() {
    const auto latest = scanner::latest_scan(database_);
    if (!latest) return latest.error();
    consumer_ = {.name = consumer_of(options_.name), .feed_id = source_.feed, .scan = *latest};
    consumer_.progress = {.until = *latest, .start_over_id = tracker::InstanceId::random().to_string()};
    {
      const std::scoped_lock lock(publisher_.mutex_);
      ++publisher_.figures_.resets;
    }
    consumer_.committed_at = clock_.wall_now();
    return consumers_.commit(consumer_);
  }

  base::Result<> publish_range() {
    scanner::ConsumerProgress& progress = *consumer_.progress;
    const bool everything = starts_over();
    if (everything && !progress.after) {
      // Passed by itself: what follows a reset depends on it.
      const Event reset = make_reset(source_, progress.until, progress.start_over_id);
      if (auto published = publish(reset); !published) return published;
      progress.after = "";
      if (auto moved = commit(1); !moved) return moved;
    }
    const auto files = scanner::keeps_files(database_);
    if (!files) return files.error();
    // What happened to files since then is not known: those that were deleted must not stay.
    if (progress.files && !*files) return start_over();
    progress.files = *files;
    if (everything && !options_.publishes_existing) return finish_range();
    return read_range({.since = consumer_.scan,
                       .until = progress.until,
                       .after = progress.after,
                       .files = *files,
                       .after_file = progress.after_file,
                       .everything = everything});
  }

  base::Result<> read_range(const scanner::FeedRange& range) {
    const Batch empty(options_.batch_events_max / parts(), Batch::bytes_max / parts());
    Reading reading{{empty}, {empty}};
    const auto on_entry = [&](const scanner::FeedEntry& entry) {
      if (!reading.ends_at) reading.ends_at = clock_.steady_now() + options_.read_max;
      Event event = make_event(source_, entry, consumer_.progress->start_over_id);
      if (reading.part.batch.ends_before(event)) {
        reading.outcome = pass(reading);
        reading.is_partial = reading.is_partial || should_stop_();  // read_changes() asks only while it reads
        if (!reading.outcome || reading.is_partial) return false;
      }
      if (!reading.deferred.batch.permits(event)) {
        reading.outcome = settle(reading);
        if (!reading.outcome) return false;
      }
      reading.part.batch.add(std::move(event));
      reading.part.last = entry;
      reading.is_partial = clock_.steady_now() >= *reading.ends_at;
      return !reading.is_partial;
    };
    const auto read = scanner::read_changes(database_, range, on_entry, should_stop_);
    if (reading.outcome && read && *read && !reading.part.batch.empty()) reading.outcome = pass(reading);
    if (reading.outcome) reading.outcome = settle(reading);
    if (!reading.outcome) return reading.outcome;
    if (!read && read.error().code == scanner::Errc::interrupted) return {};
    if (!read) return read.error();
    if (!*read) return start_over();
    return reading.is_partial || should_stop_() ? base::Result<>() : finish_range();
  }

  // Once it is published, the part before it is stored. Between two requests of a batch the read may end.
  base::Result<> pass(Reading& reading) {
    const auto events = reading.part.batch.events();
    std::size_t count = 0;
    base::Result<> outcome;
    const auto goes_on = [&] {
      return count == 0 || (!should_stop_() && clock_.steady_now() < *reading.ends_at);
    };
    while (outcome && count < events.size() && goes_on()) {
      const auto published = sink_.publish(source_, events.subspan(count));
      if (published) count += *published;
      if (!published) outcome = count_failure(published.error());
    }
    if (count == events.size()) {
      if (auto moved = move_past(reading.deferred); !moved) return moved;
      std::swap(reading.part, reading.deferred);
      return parts() > 1 ? base::Result<>() : settle(reading);
    }
    // Of a batch whose other events are not stored.
    base::Result<> moved;
    if (count > 0) {
      const Event& last = events[count - 1];
      moved = move_behind({.path = last.path, .is_file = last.is_file_entry}, count);
    }
    reading.part.batch.clear();
    reading.is_partial = true;
    return outcome ? moved : outcome;
  }

  base::Result<> settle(Reading& reading) {
    if (reading.deferred.batch.empty()) return {};
    if (auto settled = count_failure(sink_.settle()); !settled) return settled;
    return move_past(reading.deferred);
  }

  base::Result<> move_past(Part& stored) {
    if (stored.batch.empty()) return {};
    const std::size_t count = stored.batch.events().size();
    stored.batch.clear();
    return move_behind(stored.last, count);
  }

  base::Result<> move_behind(const scanner::FeedEntry& last, std::size_t events) {
    scanner::FeedRange position;
    position.go_on_behind(last);
    consumer_.progress->after = position.after;
    consumer_.progress->after_file = position.after_file;
    return commit(events);
  }

  base::Result<> finish_range() {
    const scanner::ConsumerProgress progress = *consumer_.progress;
    if (progress.after) {
      const auto scan = database_.scan(progress.until);
      if (!scan) return scan.error();
      const Event end = make_scan_end(source_, progress.until, *scan, progress.start_over_id);
      if (auto published = publish(end); !published) return published;
    }
    consumer_.scan = progress.until;
    consumer_.progress = {.until = progress.until, .files = progress.files};
    return commit(progress.after ? 1 : 0);
  }

  // After the changes: what is wrong with totals must not hold these up. The totals may be those of a later
  // scan.
  base::Result<> store_totals(std::uint64_t latest) {
    if (!sink_.takes_totals() || publisher_.totals_scan_ == latest) return {};
    for (;;) {
      const auto before = scanner::latest_scan(database_);
      if (!before) return before.error();
      const auto usage = scanner::query_usage(
          database_, "",
          {.depth = options_.totals_depth, .entries_max = totals_max, .absent_is_empty = true});
      if (!usage) return usage.error();
      const auto after = scanner::latest_scan(database_);
      if (!after) return after.error();
      if (*before != *after) continue;
      const auto scan = database_.scan(*after);
      if (!scan) return scan.error();
      if (!*scan) return {};  // it is the last one: always there
      std::vector<DirectoryTotals> totals;
      scanner::for_each_entry((*usage)->total, [&](const scanner::UsageEntry& entry) {
        totals.push_back({entry.path, entry.files, entry.dirs, entry.bytes, entry.allocated,
                          (*usage)->is_complete(entry)});
      });
      auto stored = sink_.store_totals(source_, **scan, totals, !(*usage)->truncated);
      if (stored) publisher_.totals_scan_ = latest;
      return stored;
    }
  }

  // A single event, on which others depend.
  base::Result<> publish(const Event& event) {
    const auto published = sink_.publish(source_, {&event, 1});
    return count_failure(published ? sink_.settle() : published.error());
  }

  base::Result<> count_failure(base::Result<> outcome) {
    const std::scoped_lock lock(publisher_.mutex_);
    if (!outcome) ++publisher_.figures_.failures;
    return outcome;
  }

  // While it starts over, it is behind by everything.
  void note_position() {
    const std::scoped_lock lock(publisher_.mutex_);
    publisher_.figures_.scan = starts_over() ? 0 : consumer_.scan;
  }

  // After these events of the sink: a batch counts once it is not published again.
  base::Result<> commit(std::size_t events = 0) {
    consumer_.committed_at = clock_.wall_now();
    if (auto moved = consumers_.move(consumer_); !moved || events == 0) return moved;
    const std::scoped_lock lock(publisher_.mutex_);
    publisher_.figures_.events += events;
    publisher_.figures_.last_success = consumer_.committed_at;
    return {};
  }

  static constexpr std::size_t totals_max = 10'000;

  Publisher& publisher_;
  const Options& options_;
  Sink& sink_;
  const base::Clock& clock_;
  const Source source_;
  scanner::Consumer consumer_;
  scanner::UsageDatabase database_;
  scanner::Consumers consumers_;
  const std::function<bool()>& should_stop_;
};

Publisher::Publisher(Options options, Sink& sink, const base::Clock& clock)
    : options_(std::move(options)), sink_(sink), clock_(clock), figures_{.name = options_.name} {}

scanner::SinkFigures Publisher::figures() const {
  const std::scoped_lock lock(mutex_);
  return figures_;
}

base::Result<> Publisher::publish_all(const std::function<bool()>& should_stop) {
  auto outcome = publish_feed(should_stop);
  const std::scoped_lock lock(mutex_);
  figures_.error = outcome ? "" : outcome.error().message;
  if (outcome) figures_.last_success = clock_.wall_now();
  return outcome;
}

base::Result<> Publisher::publish_feed(const std::function<bool()>& should_stop) {
  const auto file = scanner::UsageDatabase::file_in(options_.data_dir);
  auto database = scanner::UsageDatabase::open_read_only(file);
  if (!database && database.error().code == std::errc::no_such_file_or_directory) return {};  // no scan yet
  if (!database) return database.error();
  auto consumers = scanner::Consumers::open(options_.data_dir);
  if (!consumers) return consumers.error();
  auto feed = scanner::feed_id(*database);
  if (!feed) return feed.error();
  return Run(*this, *std::move(database), *std::move(consumers), *std::move(feed), should_stop)
      .publish_feed();
}

}  // namespace spoor::publish
