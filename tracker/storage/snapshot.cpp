#include "tracker/storage/snapshot.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/byte_codec.h"
#include "base/checksum.h"
#include "tracker/errors.h"
#include "tracker/storage/mark_set_codec.h"

namespace spoor::tracker {
namespace {

constexpr std::string_view magic = "SPOORTB";
constexpr std::size_t checksum_bytes = 8;
constexpr std::size_t names_bytes_max = std::size_t{64} << 10U;  // and of the other fields

base::Error corrupt(std::string_view what) {
  return {Errc::snapshot_corrupt, fmt::format("corrupt: {}", what)};
}

void encode_time(base::ByteWriter& out, base::WallTime time) {
  out.u64(static_cast<std::uint64_t>(time.time_since_epoch().count()));
}

base::WallTime decode_time(base::ByteReader& in) {
  return base::WallTime(std::chrono::nanoseconds(static_cast<std::int64_t>(in.u64())));
}

std::size_t bytes_at_most(const TrackerState& state) {
  std::size_t bytes = names_bytes_max + state.current_marks->memory_bytes();
  for (const ClosedSpan& span : state.history) bytes += span.marks->memory_bytes();
  return bytes;
}

base::Result<> decode_cycles(base::ByteReader& in, TrackerState& state) {
  const std::uint32_t count = in.u32();
  for (std::uint32_t i = 0; i < count; ++i) {
    const CycleId last{in.u64()};
    auto marks = decode_mark_set(in);
    if (!marks) return marks.error();
    const bool in_order = state.history.empty() || state.history.back().last < last;
    if (!in_order || last < state.oldest_kept || last >= state.current) return corrupt("cycles out of order");
    state.history.push_back({last, std::make_shared<const MarkSet>(*std::move(marks))});
  }
  if (!in.ok()) return corrupt("cut off in the history");
  return {};
}

base::Result<TrackerState> decode_state(base::ByteReader& in) {
  TrackerState state;
  state.instance = decode_instance(in);
  state.complete_since_birth = in.u8() != 0;
  state.oldest_kept = {in.u64()};
  state.current = {in.u64()};
  state.current_opened_at = decode_time(in);
  state.position = in.u64();
  const bool numbers_ok = state.oldest_kept.value >= 1 && state.oldest_kept <= state.current &&
                          state.current.value <= CycleId::value_max &&
                          state.position <= journal_position_max && !state.instance.is_none();
  if (!in.ok() || !numbers_ok) return corrupt("impossible numbers");
  auto current = decode_mark_set(in);
  if (!current) return current.error();
  state.current_marks = std::make_shared<const MarkSet>(*std::move(current));
  if (auto done = decode_cycles(in, state); !done) return done.error();
  return state;
}

}  // namespace

std::uint64_t snapshot_bytes_max_of(const Tracker::Options& tracker) {
  const std::uint64_t filters = std::max(tracker.memory_bytes_max, Tracker::Options().memory_bytes_max);
  constexpr std::uint64_t lengths = (std::uint64_t{64} << 10U) + 2 * TreeMarks::count_max;
  constexpr std::uint64_t members = TreeMarks::members_max * TreeMarks::member_bytes_max;
  return filters + (tracker.history_max + 1) * (TreeMarks::bytes_max + lengths + members);
}

std::string encode_snapshot(const Snapshot& snapshot) {
  const TrackerState& state = snapshot.state;
  base::ByteWriter out;
  out.reserve(bytes_at_most(state));  // growing would take its size several times
  out.u8(snapshot_version);
  out.raw(magic);
  out.short_string(snapshot.owner.cluster);
  out.short_string(snapshot.owner.node);
  out.u64(snapshot.generation);
  encode_time(out, snapshot.saved_at);
  encode_instance(out, state.instance);
  out.u8(state.complete_since_birth ? 1 : 0);
  out.u64(state.oldest_kept.value);
  out.u64(state.current.value);
  encode_time(out, state.current_opened_at);
  out.u64(state.position);
  encode_mark_set(out, *state.current_marks);
  out.u32(static_cast<std::uint32_t>(state.history.size()));
  for (const ClosedSpan& span : state.history) {
    out.u64(span.last.value);
    encode_mark_set(out, *span.marks);
  }
  out.u64(base::checksum(out.bytes()));
  return out.take();
}

base::Result<Snapshot> decode_snapshot(std::string_view bytes) {
  if (bytes.empty()) return corrupt("the file is empty");
  const auto version = static_cast<std::uint8_t>(bytes[0]);
  if (version != snapshot_version) {
    return base::Error(Errc::snapshot_unknown,
                       fmt::format("format version {} is not known to this program", version));
  }
  if (bytes.size() < 1 + magic.size() + checksum_bytes || bytes.substr(1, magic.size()) != magic) {
    return corrupt("not a tracker's snapshot");
  }
  const std::string_view content = bytes.substr(0, bytes.size() - checksum_bytes);
  if (base::ByteReader(bytes.substr(content.size())).u64() != base::checksum(content)) {
    return corrupt("the checksum does not match");
  }
  base::ByteReader in(content.substr(1 + magic.size()));
  Snapshot snapshot;
  snapshot.owner.cluster = in.short_string();
  snapshot.owner.node = in.short_string();
  snapshot.generation = in.u64();
  snapshot.saved_at = decode_time(in);
  auto state = decode_state(in);
  if (!state) return state.error();
  if (in.remaining() != 0) return corrupt("bytes after the end");
  snapshot.state = *std::move(state);
  return snapshot;
}

}  // namespace spoor::tracker
