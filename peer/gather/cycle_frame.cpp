#include "peer/gather/cycle_frame.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/byte_codec.h"
#include "base/checksum.h"
#include "tracker/cycles/ids.h"
#include "tracker/storage/mark_set_codec.h"

namespace spoor::peer {
namespace {

constexpr std::uint8_t frame_version = 1;
constexpr std::string_view magic = "SPOORCY";
constexpr std::size_t checksum_bytes = 8;
constexpr std::size_t frame_bytes = std::size_t{2} << 10U;  // without the marks
constexpr std::uint8_t flag_gap = 1;
constexpr std::uint8_t flag_complete_since_birth = 2;
constexpr std::uint8_t flag_closed = 4;  // ignored by earlier versions

base::Error bad_frame(std::string_view what) {
  return {std::make_error_code(std::errc::bad_message),
          fmt::format("the response is no cycle frame: {}", what)};
}

}  // namespace

std::string encode_cycle_frame(const CycleFrame& frame) {
  const tracker::CycleAnswer& answer = frame.answer;
  base::ByteWriter out;
  out.reserve(frame_bytes + answer.marks.memory_bytes());
  out.u8(frame_version);
  out.raw(magic);
  out.short_string(frame.sender.cluster);
  out.short_string(frame.sender.node);
  out.u64(frame.run);
  out.u64(frame.rules_digest);
  tracker::encode_instance(out, answer.instance);
  out.u64(answer.current.value);
  out.u64(static_cast<std::uint64_t>(std::max(answer.current_age.count(), std::int64_t{0})));
  out.u8(static_cast<std::uint8_t>((answer.gap ? flag_gap : 0) |
                                   (answer.complete_since_birth ? flag_complete_since_birth : 0) |
                                   (frame.is_closed ? flag_closed : 0)));
  tracker::encode_mark_set(out, answer.marks);
  out.u64(base::checksum(out.bytes()));
  return out.take();
}

base::Result<CycleFrame> decode_cycle_frame(std::string_view bytes) {
  if (bytes.size() < 1 + magic.size() + checksum_bytes || bytes.substr(1, magic.size()) != magic) {
    return bad_frame("it does not begin with the header of one");
  }
  const auto version = static_cast<std::uint8_t>(bytes[0]);
  if (version != frame_version) {
    return bad_frame(
        fmt::format("version {}, but this program supports {}; upgrade the older of the two nodes", version,
                    frame_version));
  }
  const std::string_view content = bytes.substr(0, bytes.size() - checksum_bytes);
  if (base::ByteReader(bytes.substr(content.size())).u64() != base::checksum(content)) {
    return bad_frame("the checksum does not match");
  }
  base::ByteReader in(content.substr(1 + magic.size()));
  CycleFrame frame;
  tracker::CycleAnswer& answer = frame.answer;
  frame.sender.cluster = in.short_string();
  frame.sender.node = in.short_string();
  frame.run = in.u64();
  frame.rules_digest = in.u64();
  answer.instance = tracker::decode_instance(in);
  answer.current = {in.u64()};
  const std::uint64_t age_ms = in.u64();
  answer.current_age = std::chrono::milliseconds(
      std::min(age_ms, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())));
  const std::uint8_t flags = in.u8();
  answer.gap = (flags & flag_gap) != 0;
  answer.complete_since_birth = (flags & flag_complete_since_birth) != 0;
  frame.is_closed = (flags & flag_closed) != 0;
  if (!in.ok()) return bad_frame("it is cut off");
  // The names are printed, logged, stored, and used as keys.
  if (!tracker::is_node_name(frame.sender.node) || !tracker::is_node_name(frame.sender.cluster)) {
    return bad_frame("its node or cluster name is invalid");
  }
  if (answer.current.value == 0 || answer.current.value > tracker::CycleId::value_max ||
      answer.instance.is_none()) {
    return bad_frame("its instance or cycle is invalid");
  }
  auto marks = tracker::decode_mark_set(in);
  if (!marks) return bad_frame(marks.error().message);
  if (in.remaining() != 0) return bad_frame("bytes after the end");
  answer.marks = *std::move(marks);
  return frame;
}

}  // namespace spoor::peer
