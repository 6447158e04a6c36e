// Snapshots, version 8: the bytes as they are, and with a checksum that fits them, without which nothing
// behind it would be reached.
#include <string>

#include "base/byte_codec.h"
#include "base/checksum.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fuzz/fuzz_support.h"
#include "tracker/errors.h"
#include "tracker/storage/snapshot.h"

namespace spoor::tracker {
namespace {

using fuzz::require;

constexpr std::size_t checksum_bytes = 8;

// A few packed bytes may be a filter far larger than there is memory for here.
constexpr std::uint64_t dense_current_bytes_max = std::uint64_t{4} << 20U;

// In place of the last bytes, so that a file that was changed somewhere is whole again.
std::string sealed(std::string_view bytes) {
  base::ByteWriter out;
  out.raw(bytes.substr(0, bytes.size() - checksum_bytes));
  out.u64(base::checksum(out.bytes()));
  return out.take();
}

void check_refusal(const base::Error& error, std::string_view bytes) {
  const bool is_other_version = !bytes.empty() && bytes[0] != char{snapshot_version};
  require(error.code == (is_other_version ? Errc::snapshot_unknown : Errc::snapshot_corrupt),
          "another version is unknown, anything else that is refused is corrupt");
}

void check_state(const TrackerState& state) {
  require(!state.instance.is_none(), "a state is of some instance");
  require(state.oldest_kept.value >= 1 && state.oldest_kept <= state.current, "what is kept ends now");
  require(state.current.value <= CycleId::value_max, "a cycle is one that can be");
  require(state.position <= journal_position_max, "a position is one that a journal can have");
  CycleId from = state.oldest_kept;
  for (const ClosedSpan& span : state.history) {
    require(span.last >= from && span.last < state.current, "closed spans rise, up to the current cycle");
    from = next(span.last);
  }
}

std::uint64_t dense_bytes(const MarkSet& marks) {
  std::uint64_t bytes = 0;
  for (const BloomFilter& filter : marks.filters()) bytes += filter.shape().byte_count();
  return bytes;
}

// A tracker makes the filters of the current cycle dense, and packs them in its own way.
Snapshot with_dense_current(Snapshot snapshot) {
  auto marks = std::make_shared<MarkSet>(*snapshot.state.current_marks);
  marks->unpack(dense_current_bytes_max);
  snapshot.state.current_marks = std::move(marks);
  return snapshot;
}

void check_tracker(const Snapshot& snapshot) {
  if (dense_bytes(*snapshot.state.current_marks) > dense_current_bytes_max) return;
  const fakes::ManualClock clock;
  const Tracker::Options options{.history_max = snapshot.state.history.size()};
  Snapshot kept = snapshot;
  kept.state = Tracker(options, clock, snapshot.state).state();
  require(encode_snapshot(kept) == encode_snapshot(with_dense_current(snapshot)),
          "a tracker goes on with all of it");
}

void check(std::string_view bytes) {
  const auto snapshot = [&] {
    const fuzz::MemoryBound bound(bytes.size());
    return decode_snapshot(bytes);
  }();
  if (!snapshot) return check_refusal(snapshot.error(), bytes);
  check_state(snapshot->state);
  const std::string encoded = encode_snapshot(*snapshot);
  require(encoded.size() <= bytes.size(), "nothing is made up");
  const auto again = decode_snapshot(encoded);
  require(again && encode_snapshot(*again) == encoded, "what was decoded survives the next save");
  check_tracker(*snapshot);
}

}  // namespace
}  // namespace spoor::tracker

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = spoor::fuzz::text_of(data, size);
  spoor::tracker::check(bytes);
  if (size >= spoor::tracker::checksum_bytes) spoor::tracker::check(spoor::tracker::sealed(bytes));
  return 0;
}
