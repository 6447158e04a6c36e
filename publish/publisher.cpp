#include "publish/publisher.h"

#include <fmt/core.h>

#include <optional>
#include <utility>

#include "scanner/errors.h"
#include "scanner/store/usage_query.h"
#include "tracker/cycles/ids.h"

namespace spoor::publish {
namespace {

constexpr std::size_t totals_max = 10'000;

}  // namespace

Publisher::Publisher(Options options, Sink& sink, const base::Clock& clock)
    : options_(std::move(options)),
      sink_(sink),
      clock_(clock),
      source_{options_.cluster, options_.node, {}},
      figures_{.name = options_.name} {}

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
  source_.feed = *std::move(feed);
  while (!should_stop()) {
    const auto latest = scanner::latest_scan(*database);
    if (!latest) return latest.error();
    if (*latest == 0) return {};
    auto found = consumers->find(consumer_of(options_.name));
    if (!found) return found.error();
    if (!*found || (*found)->feed_id != source_.feed || (*found)->scan > *latest) {
      if (auto started = start_over(*database, *consumers); !started) return started;
    } else {
      consumer_ = **std::move(found);
    }
    note_position();
    if (!is_within_a_range() && consumer_.scan == *latest) return store_totals(*database, *latest);
    base::Result<> published;
    if (!is_within_a_range()) {
      // Durably: after a crash the same changes make the same events.
      consumer_.progress = {.until = *latest, .files = has_files()};
      published = commit(*consumers);
    }
    if (published) published = publish_range(*database, *consumers, should_stop);
    if (!published && sink_.needs_reset()) published = start_over(*database, *consumers);
    if (!published && published.error().code != scanner::Errc::consumer_forgotten) return published;
  }
  return {};
}

bool Publisher::is_within_a_range() const {
  const auto& progress = consumer_.progress;
  return progress && (progress->until > consumer_.scan || !progress->start_over_id.empty());
}

bool Publisher::has_files() const { return consumer_.progress && consumer_.progress->files; }

base::Result<> Publisher::start_over(scanner::UsageDatabase& database, scanner::Consumers& consumers) {
  const auto latest = scanner::latest_scan(database);
  if (!latest) return latest.error();
  consumer_ = {.name = consumer_of(options_.name), .feed_id = source_.feed, .scan = *latest};
  consumer_.progress = {.until = *latest, .start_over_id = tracker::InstanceId::random().to_string()};
  {
    const std::scoped_lock lock(mutex_);
    ++figures_.resets;
  }
  consumer_.committed_at = clock_.wall_now();
  return consumers.commit(consumer_);
}

// A reset is published and passed by itself: what follows it depends on it.
base::Result<> Publisher::publish_reset(scanner::Consumers& consumers) {
  scanner::ConsumerProgress& progress = *consumer_.progress;
  const Event reset = make_reset(source_, progress.until, progress.start_over_id);
  if (auto published = publish(reset); !published) return published;
  progress.after = "";
  return commit(consumers, 1);
}

base::Result<> Publisher::publish_range(scanner::UsageDatabase& database, scanner::Consumers& consumers,
                                        const std::function<bool()>& should_stop) {
  scanner::ConsumerProgress& progress = *consumer_.progress;
  const bool everything = !progress.start_over_id.empty();
  if (everything && !progress.after) {
    if (auto published = publish_reset(consumers); !published) return published;
  }
  const auto files = scanner::keeps_files(database);
  if (!files) return files.error();
  // What happened to files since then is not known: those that were deleted must not stay.
  if (progress.files && !*files) return start_over(database, consumers);
  progress.files = *files;
  if (everything && !options_.publishes_existing) return finish_range(database, consumers);
  const scanner::FeedRange range{.since = consumer_.scan,
                                 .until = progress.until,
                                 .after = progress.after,
                                 .files = *files,
                                 .after_file = progress.after_file,
                                 .everything = everything};
  const Batch empty(options_.batch_events_max / parts(), Batch::bytes_max / parts());
  Reading reading{{empty, {}}, {empty, {}}};
  const auto on_entry = [&](const scanner::FeedEntry& entry) {
    if (!reading.ends_at) reading.ends_at = clock_.steady_now() + options_.read_max;
    Event event = make_event(source_, entry, progress.start_over_id);
    if (reading.part.batch.ends_before(event)) {
      reading.outcome = pass(reading, consumers, should_stop);
      reading.is_partial = reading.is_partial || should_stop();  // read_changes() asks only while it reads
      if (!reading.outcome || reading.is_partial) return false;
    }
    if (!reading.deferred.batch.permits(event)) {
      reading.outcome = settle(reading, consumers);
      if (!reading.outcome) return false;
    }
    reading.part.batch.add(std::move(event));
    reading.part.last = entry;
    reading.is_partial = clock_.steady_now() >= *reading.ends_at;
    return !reading.is_partial;
  };
  const auto read = scanner::read_changes(database, range, on_entry, should_stop);
  if (reading.outcome && read && *read && !reading.part.batch.empty())
    reading.outcome = pass(reading, consumers, should_stop);
  if (reading.outcome) reading.outcome = settle(reading, consumers);
  if (!reading.outcome) return reading.outcome;
  if (!read && read.error().code == scanner::Errc::interrupted) return {};
  if (!read) return read.error();
  if (!*read) return start_over(database, consumers);
  return reading.is_partial || should_stop() ? base::Result<>() : finish_range(database, consumers);
}

// Once it is published, the part before it is stored. Between two requests of a batch the read may end.
base::Result<> Publisher::pass(Reading& reading, scanner::Consumers& consumers,
                               const std::function<bool()>& should_stop) {
  const auto events = reading.part.batch.events();
  std::size_t count = 0;
  base::Result<> outcome;
  const auto goes_on = [&] {
    return count == 0 || (!should_stop() && clock_.steady_now() < *reading.ends_at);
  };
  while (outcome && count < events.size() && goes_on()) {
    const auto published = sink_.publish(source_, events.subspan(count));
    if (published) count += *published;
    if (!published) outcome = count_failure(published.error());
  }
  if (count < events.size()) {
    const auto moved = move_past_first(reading.part, count, consumers);
    reading.part.batch.clear();
    reading.is_partial = true;
    return outcome ? moved : outcome;
  }
  if (auto moved = move_past(reading.deferred, consumers); !moved) return moved;
  std::swap(reading.part, reading.deferred);
  return parts() > 1 ? base::Result<>() : settle(reading, consumers);
}

base::Result<> Publisher::settle(Reading& reading, scanner::Consumers& consumers) {
  if (reading.deferred.batch.empty()) return {};
  if (auto settled = count_failure(sink_.settle()); !settled) return settled;
  return move_past(reading.deferred, consumers);
}

base::Result<> Publisher::move_past(Part& stored, scanner::Consumers& consumers) {
  if (stored.batch.empty()) return {};
  const std::size_t count = stored.batch.events().size();
  stored.batch.clear();
  return move_behind(stored.last, count, consumers);
}

// Of a batch whose other events are not stored.
base::Result<> Publisher::move_past_first(const Part& part, std::size_t count,
                                          scanner::Consumers& consumers) {
  if (count == 0) return {};
  const Event& last = part.batch.events()[count - 1];
  return move_behind({.path = last.path, .is_file = last.is_file_entry}, count, consumers);
}

base::Result<> Publisher::move_behind(const scanner::FeedEntry& last, std::size_t events,
                                      scanner::Consumers& consumers) {
  scanner::FeedRange position;
  position.go_on_behind(last);
  consumer_.progress->after = position.after;
  consumer_.progress->after_file = position.after_file;
  return commit(consumers, events);
}

base::Result<> Publisher::finish_range(scanner::UsageDatabase& database, scanner::Consumers& consumers) {
  const scanner::ConsumerProgress progress = *consumer_.progress;
  if (progress.after) {
    const auto scan = database.scan(progress.until);
    if (!scan) return scan.error();
    const Event end = make_scan_end(source_, progress.until, *scan, progress.start_over_id);
    if (auto published = publish(end); !published) return published;
  }
  consumer_.scan = progress.until;
  consumer_.progress = {.until = progress.until, .files = progress.files};
  return commit(consumers, progress.after ? 1 : 0);
}

// After the changes: what is wrong with totals must not hold these up. The totals may be those of a later
// scan.
base::Result<> Publisher::store_totals(scanner::UsageDatabase& database, std::uint64_t latest) {
  if (!sink_.takes_totals() || totals_scan_ == latest) return {};
  for (;;) {
    const auto before = scanner::latest_scan(database);
    if (!before) return before.error();
    const auto usage = scanner::query_usage(
        database, "", {.depth = options_.totals_depth, .entries_max = totals_max, .absent_is_empty = true});
    if (!usage) return usage.error();
    const auto after = scanner::latest_scan(database);
    if (!after) return after.error();
    if (*before != *after) continue;
    const auto scan = database.scan(*after);
    if (!scan) return scan.error();
    if (!*scan) return {};  // it is the last one: always there
    std::vector<DirectoryTotals> totals;
    scanner::for_each_entry((*usage)->total, [&](const scanner::UsageEntry& entry) {
      totals.push_back(
          {entry.path, entry.files, entry.dirs, entry.bytes, entry.allocated, (*usage)->is_complete(entry)});
    });
    auto stored = sink_.store_totals(source_, **scan, totals, !(*usage)->truncated);
    if (stored) totals_scan_ = latest;
    return stored;
  }
}

base::Result<> Publisher::publish(const Event& event) {
  const auto published = sink_.publish(source_, {&event, 1});
  return count_failure(published ? sink_.settle() : published.error());
}

base::Result<> Publisher::count_failure(base::Result<> outcome) {
  const std::scoped_lock lock(mutex_);
  if (!outcome) ++figures_.failures;
  return outcome;
}

// While it starts over, it is behind by everything.
void Publisher::note_position() {
  const bool starts_over = consumer_.progress && !consumer_.progress->start_over_id.empty();
  const std::scoped_lock lock(mutex_);
  figures_.scan = starts_over ? 0 : consumer_.scan;
}

// A batch counts once it is not published again.
base::Result<> Publisher::commit(scanner::Consumers& consumers, std::size_t events) {
  consumer_.committed_at = clock_.wall_now();
  if (auto moved = consumers.move(consumer_); !moved || events == 0) return moved;
  const std::scoped_lock lock(mutex_);
  figures_.events += events;
  figures_.last_success = consumer_.committed_at;
  return {};
}

}  // namespace spoor::publish
