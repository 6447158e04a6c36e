#include "daemon/api/mark_intake.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <span>
#include <utility>

#include "daemon/process/task.h"

namespace spoor::daemon {
namespace {

// The outcome of one part of a request, and of the next.
void add(tracker::MarkOutcome& all, const tracker::MarkOutcome& next) {
  all.marked += next.marked;
  all.added += next.added;
  all.cycle = next.cycle;
  all.position = std::max(all.position, next.position);
}

}  // namespace

MarkIntake::MarkIntake(boost::asio::io_context& context, boost::asio::thread_pool& large_bodies,
                       tracker::Persistence& persistence, const tracker::NamespaceRules& rules,
                       tracker::DrivePaths drive_paths, GroupCommit& group_commit, Introduction& introduction,
                       const base::Clock& clock)
    : context_(context),
      large_bodies_(large_bodies),
      persistence_(persistence),
      tracker_(persistence.tracker()),
      rules_(rules),
      drive_paths_(std::move(drive_paths)),
      group_commit_(group_commit),
      introduction_(introduction),
      clock_(clock) {}

boost::asio::awaitable<MarkIntake::ReceiptOrProblem> MarkIntake::take(Source source, std::size_t bytes,
                                                                      std::string identity) {
  MarkedOrProblem marked;
  if (is_large(bytes)) {
    marked = co_await run_on(large_bodies_, [&] { return mark(source); });
  } else {
    marked = mark(source);
  }
  if (marked && !is_confirmed(marked->outcome.position)) {
    auto problem = co_await run_on(context_, confirm(marked->outcome.position));
    if (problem) marked = *std::move(problem);
  }
  if (!marked) {
    count_rejected();
    co_return marked.error();
  }
  count_accepted(*marked, std::move(identity));
  Receipt receipt{marked->outcome.marked, marked->ignored, marked->outcome.cycle};
  co_return receipt;
}

MarkIntake::MarkedOrProblem MarkIntake::mark(const Source& source) {
  auto batch = take_batch();
  auto problem = source(*batch);
  Marked marked;
  if (!problem) {
    const MarkBatch::Counts& counts = batch->counts();
    note_unknown_events(counts);
    note_invalid_keys(counts);
    // Also what can't be acknowledged is marked: it costs a directory read, and may be true.
    batch->hand_over(
        [&](std::span<const tracker::Mark> marks) { add(marked.outcome, tracker_.mark(marks)); });
    marked.outcome.marked -= counts.further;
    marked.ignored = counts.ignored;
  }
  return_batch(std::move(batch));
  if (problem) return *std::move(problem);
  return marked;
}

// Whether it would delay the other requests of its thread: by its size, or by matching its paths against the
// globs of namespace.exclude.
bool MarkIntake::is_large(std::size_t bytes) const {
  constexpr std::size_t glob_bytes_max = 4 * MarkBatch::small_body_bytes;
  return bytes > MarkBatch::small_body_bytes || bytes * rules_.globs() > glob_bytes_max;
}

// Whether there is nothing to wait for.
bool MarkIntake::is_confirmed(tracker::JournalPosition position) const {
  return introduction_.is_open() && persistence_.durable_position() >= position;
}

boost::asio::awaitable<std::optional<Problem>> MarkIntake::confirm(tracker::JournalPosition position) {
  const auto durable = co_await group_commit_.wait(position);
  if (!durable) {
    Problem problem{503, "not_durable", durable.error().message};
    co_return problem;
  }
  if (std::string error = co_await introduction_.wait(); !error.empty()) {
    Problem problem{503, "not_a_member", std::move(error)};
    co_return problem;
  }
  co_return std::nullopt;
}

void MarkIntake::count_accepted(const Marked& marked, std::string identity) {
  const std::scoped_lock lock(mutex_);
  counters_.accepted += marked.outcome.marked;
  counters_.added += marked.outcome.added;
  counters_.ignored += marked.ignored;
  auto& identities = counters_.identities;
  const bool has_room = identities.size() < MarkCounters::identities_max;
  if (!has_room && !identities.contains(identity)) identity = "other";
  MarkCounters::OfIdentity& counted = identities[std::move(identity)];
  counted.accepted += marked.outcome.marked;
  counted.last_at = clock_.wall_now();
}

void MarkIntake::count_rejected() {
  const std::scoped_lock lock(mutex_);
  ++counters_.rejected;
}

MarkCounters MarkIntake::counters() const {
  const std::scoped_lock lock(mutex_);
  return counters_;
}

void MarkIntake::note_unknown_events(const MarkBatch::Counts& counts) {
  if (counts.unknown_events == 0) return;
  const std::uint64_t before = [&] {
    const std::scoped_lock lock(mutex_);
    return std::exchange(counters_.unknown_events, counters_.unknown_events + counts.unknown_events);
  }();
  if (before > 0) return;
  spdlog::warn("S3 events named '{}' are unknown and marked nothing; further unknown events are only counted",
               counts.unknown_event);
}

// In the log once a minute at most: any writer of the store can cause them.
void MarkIntake::note_invalid_keys(const MarkBatch::Counts& counts) {
  if (counts.invalid_keys == 0) return;
  const auto unlogged = [&] {
    const std::scoped_lock lock(mutex_);
    counters_.invalid_keys += counts.invalid_keys;
    return invalid_keys_.note("", counts.invalid_keys, clock_.steady_now());
  }();
  if (!unlogged) return;
  spdlog::warn(
      "S3 events name objects that can be no path: {} that were not reported yet, '{}' among them, for which "
      "all of '{}' was marked",
      *unlogged, counts.invalid_key, counts.invalid_key_mark);
}

std::unique_ptr<MarkBatch> MarkIntake::take_batch() {
  const std::scoped_lock lock(mutex_);
  if (idle_batches_.empty()) {
    return std::make_unique<MarkBatch>(rules_, drive_paths_, [this](const std::string& drive) {
      return persistence_.drives().id_of(drive);
    });
  }
  auto batch = std::move(idle_batches_.back());
  idle_batches_.pop_back();
  return batch;
}

void MarkIntake::return_batch(std::unique_ptr<MarkBatch> batch) {
  batch->clear();
  const std::scoped_lock lock(mutex_);
  idle_batches_.push_back(std::move(batch));
}

}  // namespace spoor::daemon
