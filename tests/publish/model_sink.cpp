#include "tests/publish/model_sink.h"

#include <algorithm>

namespace spoor::publish {

void LateProofCopy::apply(const Event& event) {
  const std::size_t feed_at = event.id.find('/') + 1;
  const std::string feed = event.id.substr(feed_at, event.id.find('/', feed_at) - feed_at);
  const bool is_reset = event.kind == Event::Kind::reset;
  if (is_reset ? !resets_.insert(event.id).second : feed != feed_ || event.scan <= scan_) return;
  if (is_reset) {
    feed_ = feed;
    scan_ = 0;
  }
  if (event.kind == Event::Kind::scan) scan_ = event.scan;
  copy_.apply(event);
}

void ModelSink::store(const Event& event) {
  if (!ids_.insert(event.id).second && drops_repetitions) return;
  stored.push_back(event);
  copy.apply(event);
  late_proof.apply(event);
  if (event.kind != Event::Kind::scan) return;
  for (const Event& late : given_up_) {
    // One that nobody has seen arrive is that of a sink that was forgotten.
    if (late.kind != Event::Kind::reset || late_proof.has_reset(late.id)) late_proof.apply(late);
  }
  given_up_.clear();
}

base::Result<std::size_t> ModelSink::publish(const Source& /*source*/, std::span<const Event> events) {
  on_publish();
  if (!is_deferring) events = events.first(std::min(events.size(), request_max));
  needs_reset_ = is_empty_ && events.front().kind != Event::Kind::reset;
  if (needs_reset_) return base::Error(std::make_error_code(std::errc::io_error), "the sink is empty");
  is_empty_ = false;
  const std::size_t before = deferred_.size();
  deferred_.insert(deferred_.end(), events.begin(), events.end());
  largest_batch = std::max(largest_batch, deferred_.size());
  if (auto kept = store_deferred(is_deferring ? before : deferred_.size()); !kept) return kept.error();
  return events.size();
}

base::Result<> ModelSink::settle() {
  if (fails_settling) return base::Error(std::make_error_code(std::errc::io_error), "the sink fails");
  return store_deferred(deferred_.size());
}

base::Result<> ModelSink::store_deferred(std::size_t count) {
  if (fails_one_in != 0 && !deferred_.empty() && random_.one_in(fails_one_in)) {
    for (const Event& event : deferred_) {
      if (random_.one_in(2)) store(event);
    }
    given_up_.insert(given_up_.end(), deferred_.begin(), deferred_.end());
    deferred_.clear();
    return base::Error(std::make_error_code(std::errc::io_error), "the sink fails");
  }
  for (std::size_t each = 0; each < count; ++each) store(deferred_[each]);
  deferred_.erase(deferred_.begin(), deferred_.begin() + static_cast<std::ptrdiff_t>(count));
  return {};
}

base::Result<> ModelSink::store_totals(const Source& /*source*/, const scanner::ScanRecord& scan,
                                       std::span<const DirectoryTotals> /*totals*/, bool /*are_all*/) {
  if (fails_totals) return base::Error(std::make_error_code(std::errc::io_error), "the sink fails");
  totals_of.push_back(scan.id);
  return {};
}

void ModelSink::lose_everything() {
  copy = {};
  ids_.clear();
  is_empty_ = true;
}

}  // namespace spoor::publish
