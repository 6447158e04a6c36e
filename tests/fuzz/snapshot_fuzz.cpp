// Snapshots, version 8: the bytes as they are, and with a checksum that fits them, without which nothing
// behind it would be reached.
#include <string>

#include "base/byte_codec.h"
#include "base/checksum.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fuzz/fuzz_support.h"
#include "tracker/errors.h"
#include "tracker/snapshot.h"

namespace spoor::tracker {
namespace {

using fuzz::require;

constexpr std::size_t checksum_bytes = 8;

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
  for (const ClosedCycle& cycle : state.history) {
    require(cycle.id >= from && cycle.id < state.current, "closed cycles rise, up to the current one");
    from = next(cycle.id);
  }
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
  const fakes::ManualClock clock;
  Snapshot kept = *snapshot;
  kept.state = Tracker({{64, 1}, 1, kept.state.history.size()}, clock, snapshot->state).state();
  require(encode_snapshot(kept) == encoded, "a tracker goes on with all of it");
}

}  // namespace
}  // namespace spoor::tracker

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = spoor::fuzz::text_of(data, size);
  spoor::tracker::check(bytes);
  if (size >= spoor::tracker::checksum_bytes) spoor::tracker::check(spoor::tracker::sealed(bytes));
  return 0;
}
