#include "tracker/storage/journal_segment.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/byte_codec.h"
#include "base/checksum.h"
#include "tracker/errors.h"
#include "tracker/storage/mark_set_codec.h"

namespace spoor::tracker {
namespace {

constexpr std::string_view segment_magic = "SPOORJL";
constexpr std::string_view frame_magic = "SPJF";
constexpr std::size_t frame_header_bytes = 4 + 4 + 8 + 8 + 8;
// The last byte of a frame is not zero, hence written: it shows whether a frame was written completely. A
// frame whose checksums match is read whatever it is.
constexpr char frame_end = '.';

base::Error corrupt(const char* what) { return {Errc::journal_corrupt, what}; }

// The checksum of a frame's header. It includes the instance, so that only frames of this instance are valid.
std::uint64_t header_checksum(const InstanceId& instance, std::string_view fields) {
  base::ByteWriter out;
  encode_instance(out, instance);
  out.raw(fields);
  return base::checksum(out.bytes());
}

struct FrameHeader {
  std::uint32_t length = 0;
  JournalPosition position = 0;
  std::uint64_t checksum = 0;
};

// nullopt if the bytes do not begin with the header of a frame.
std::optional<FrameHeader> read_frame_header(const InstanceId& instance, std::string_view bytes) {
  if (bytes.size() < frame_header_bytes || !bytes.starts_with(frame_magic)) return std::nullopt;
  base::ByteReader in(bytes.substr(frame_magic.size(), frame_header_bytes - frame_magic.size()));
  FrameHeader header;
  header.length = in.u32();
  header.position = in.u64();
  header.checksum = in.u64();
  const std::string_view fields = bytes.substr(0, frame_header_bytes - 8);
  if (in.u64() != header_checksum(instance, fields)) return std::nullopt;
  return header;
}

// How a segment ends if the frame of this position, at the start of `rest`, can't be read.
SegmentEnd classify_end(const SegmentHeader& segment, JournalPosition position, std::string_view rest) {
  const std::size_t written = rest.find_last_not_of('\0') + 1;
  if (written == 0) return SegmentEnd::whole;
  if (holds_frame(segment.instance, rest.substr(1))) return SegmentEnd::damaged;
  const auto header = read_frame_header(segment.instance, rest);
  if (header && header->position != position) return SegmentEnd::damaged;  // a frame is missing before it
  const std::size_t whole_bytes = frame_header_bytes + (header ? std::size_t{header->length} + 1 : 0);
  if (header && written > whole_bytes) return SegmentEnd::damaged;  // more data follows
  const bool is_cut_off = written < whole_bytes;
  return is_cut_off ? SegmentEnd::torn : SegmentEnd::broken;
}

}  // namespace

std::string encode_segment_header(const SegmentHeader& header) {
  base::ByteWriter out;
  out.u8(journal_version);
  out.raw(segment_magic);
  out.short_string(header.owner.cluster);
  out.short_string(header.owner.node);
  encode_instance(out, header.instance);
  out.u64(header.start);
  out.u64(header.follows);
  out.u64(base::checksum(out.bytes()));
  return out.take();
}

base::Result<SegmentHeader> take_segment_header(std::string_view& bytes) {
  if (bytes.size() < 1 + segment_magic.size() || bytes.substr(1, segment_magic.size()) != segment_magic) {
    return corrupt("not a segment of a journal");
  }
  base::ByteReader in(bytes);
  const std::uint8_t version = in.u8();
  if (version != journal_version) {
    return base::Error(Errc::snapshot_unknown,
                       fmt::format("journal version {} is not known to this program", version));
  }
  in.raw(segment_magic.size());
  SegmentHeader header;
  header.owner.cluster = in.short_string();
  header.owner.node = in.short_string();
  header.instance = decode_instance(in);
  header.start = in.u64();
  header.follows = in.u64();
  const std::string_view content = bytes.substr(0, bytes.size() - in.remaining());
  if (in.u64() != base::checksum(content) || !in.ok()) return corrupt("the header's checksum does not match");
  if (header.instance.is_none()) return corrupt("a header without an instance");
  if (header.follows > header.start || header.start > journal_position_max) {
    return corrupt("an impossible position in the header");
  }
  bytes.remove_prefix(bytes.size() - in.remaining());
  return header;
}

std::string encode_frame(const InstanceId& instance, JournalPosition position, std::string_view records) {
  base::ByteWriter out;
  out.reserve(frame_header_bytes + records.size() + 1);
  out.raw(frame_magic);
  out.u32(static_cast<std::uint32_t>(records.size()));
  out.u64(position);
  out.u64(base::checksum(records));
  out.u64(header_checksum(instance, out.bytes()));
  out.raw(records);
  out.raw({&frame_end, 1});
  return out.take();
}

SegmentFrames read_frames(const SegmentHeader& segment_header, std::string_view bytes) {
  SegmentFrames segment;
  segment.end = segment_header.start;
  for (;;) {
    const auto header = read_frame_header(segment_header.instance, bytes);
    if (!header || header->position != segment.end) break;
    const std::string_view behind = bytes.substr(frame_header_bytes);
    if (header->length > behind.size()) break;
    const std::string_view records = behind.substr(0, header->length);
    if (base::checksum(records) != header->checksum) break;
    segment.frames.push_back({header->position, records});
    segment.end += records.size();
    bytes = behind.substr(std::min(behind.size(), records.size() + 1));
  }
  segment.how = classify_end(segment_header, segment.end, bytes);
  return segment;
}

bool holds_frame(const InstanceId& instance, std::string_view bytes) {
  for (std::size_t at = bytes.find(frame_magic); at != std::string_view::npos;
       at = bytes.find(frame_magic, at + 1)) {
    if (read_frame_header(instance, bytes.substr(at))) return true;
  }
  return false;
}

}  // namespace spoor::tracker
