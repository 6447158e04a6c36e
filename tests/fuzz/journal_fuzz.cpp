// A segment of a journal: the bytes as they are, and with checksums that fit them, without which no record
// would be reached.
#include <algorithm>
#include <string>
#include <utility>

#include "base/byte_codec.h"
#include "base/checksum.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fuzz/fuzz_support.h"
#include "tests/fuzz/segment_input.h"
#include "tracker/errors.h"
#include "tracker/filter/hash.h"
#include "tracker/storage/recovery.h"

namespace spoor::tracker {
namespace {

using fuzz::require;

constexpr std::uint64_t level_bytes_max = 4096;
constexpr std::size_t frame_header_bytes = 32;
constexpr std::size_t instance_bytes = 16;

void put_checksum(std::string& bytes, std::size_t at, std::string_view of) {
  base::ByteWriter out;
  out.u64(base::checksum(of));
  bytes.replace(at, out.bytes().size(), out.bytes());
}

// With the checksums of the header and of every frame made right, as far as the lengths lead.
std::string repaired(std::string bytes) {
  base::ByteReader in(bytes);
  in.raw(8);
  in.short_string();
  in.short_string();
  const std::string instance(in.raw(instance_bytes));
  in.raw(8 + 8);
  std::size_t at = bytes.size() - in.remaining();
  if (!in.ok() || in.remaining() < 8) return bytes;
  put_checksum(bytes, at, std::string_view(bytes).substr(0, at));
  at += 8;
  while (at <= bytes.size() && bytes.size() - at >= frame_header_bytes) {
    const std::uint32_t length = base::ByteReader(std::string_view(bytes).substr(at + 4)).u32();
    put_checksum(bytes, at + 16, std::string_view(bytes).substr(at + frame_header_bytes, length));
    put_checksum(bytes, at + 24, instance + bytes.substr(at, 24));
    if (length > bytes.size() - at - frame_header_bytes) break;
    at += frame_header_bytes + length + 1;
  }
  return bytes;
}

void check_frames(const SegmentHeader& header, const SegmentFrames& segment, std::string_view bytes) {
  std::string read;
  JournalPosition position = header.start;
  for (const SegmentFrames::Frame& frame : segment.frames) {
    require(frame.position == position, "frames follow on each other");
    position += frame.records.size();
    read += encode_frame(header.instance, frame.position, frame.records);
    if (read.size() <= bytes.size()) {
      read.back() = bytes[read.size() - 1];  // may be any
    } else {
      read.pop_back();  // or missing
    }
  }
  require(segment.end == position, "a segment ends behind its last frame");
  require(segment.end - header.start <= bytes.size(), "records are no more than the bytes");
  require(bytes.starts_with(read), "frames are what stands in the bytes");
  const std::size_t written = bytes.find_last_not_of('\0') + 1;
  require((segment.how == SegmentEnd::whole) == (read.size() >= written), "whole is what was read whole");
  const bool is_frame_left =
      read.size() < bytes.size() && holds_frame(header.instance, bytes.substr(read.size() + 1));
  require(!is_frame_left || segment.how == SegmentEnd::damaged, "a frame behind a bad one is damage");
}

void check_mark(const Mark& mark) {
  if (mark.kind == MarkKind::tree && mark.path.empty()) return;
  const auto path = normalise_path(mark.path);
  require(path && *path == mark.path, "a mark is of a normalised path");
}

// Calls visit(position, record) for each record that can be read; returns whether all of them could.
template <class Visit>
bool for_each_record(const SegmentFrames& segment, Visit&& visit) {
  bool is_all = true;
  for (const SegmentFrames::Frame& frame : segment.frames) {
    std::string_view rest = frame.records;
    while (!rest.empty()) {
      const std::string_view before = rest;
      const auto record = take_record(rest);
      if (!record) {
        require(rest == before, "what is no record is left where it is");
        require(record.error().code == Errc::journal_corrupt, "what is no record is corrupt");
        is_all = false;
        break;
      }
      std::string encoded;
      std::visit([&](const auto& content) { append_record(encoded, content); }, *record);
      require(encoded == before.substr(0, before.size() - rest.size()),
              "a record is what stands in the bytes");
      visit(frame.position + frame.records.size() - before.size(), *record);
    }
  }
  return is_all;
}

// Whether the marks answer for all that the mark says, in one cycle.
bool remembers(const MarkSet& marks, const Mark& mark) {
  if (mark.kind == MarkKind::tree) return marks.tree_marks().covers(mark.path);
  const std::string_view path = mark.kind == MarkKind::file ? parent_path(mark.path) : mark.path;
  return std::ranges::all_of(PrefixHashes(path).all(),
                             [&](const PathHash& hash) { return marks.filters_may_contain(hash); });
}

bool remembers(const TrackerState& state, const Mark& mark) {
  return remembers(*state.current_marks, mark) ||
         std::any_of(state.history.begin(), state.history.end(),
                     [&](const ClosedSpan& span) { return remembers(*span.marks, mark); });
}

void check_replay(const LoadedJournal& journal, JournalPosition from, bool same_boot) {
  const LoadedSegment& segment = journal.segments.front();
  const SegmentFrames& frames = segment.frames;
  const fakes::ManualClock clock;
  TrackerState base = Tracker::born(segment.header->instance, clock);
  base.position = from;
  const Tracker::Options options{.levels = LevelSchedule(200, 0.1)};
  std::uint64_t level_bytes = 0;
  for_each_record(frames, [&](JournalPosition, const JournalRecord& record) {
    const auto* level = std::get_if<LevelRecord>(&record);
    if (level != nullptr) level_bytes += std::min(level->shape.byte_count(), level_bytes_max + 1);
  });
  if (level_bytes > level_bytes_max) return;  // it may not fit in the memory there is, which is a loss
  const Replay replay = replay_journal(journal, base, options, clock, same_boot);

  const TrackerState& state = replay.state;
  require(state.instance == base.instance, "a replay goes on with the instance");
  require(state.current >= base.current, "a replay never goes back in cycle");
  const Tracker goes_on(options, clock, state);
  require(goes_on.position() == state.position, "a tracker goes on from there");
  require(state.position == std::max(from, frames.end), "a replay gets to the end of the journal");
  const bool is_trimmed = state.oldest_kept != base.oldest_kept;
  const bool all_read = for_each_record(frames, [&](JournalPosition at, const JournalRecord& record) {
    const auto* mark = std::get_if<Mark>(&record);
    if (mark == nullptr || at < from) return;
    check_mark(*mark);
    require(is_trimmed || remembers(state, *mark), "no mark is forgotten");
  });
  const bool is_damaged =
      frames.how == SegmentEnd::damaged || (frames.how == SegmentEnd::broken && same_boot);
  require(replay.missing.empty() == (all_read && !is_damaged && segment.header->follows <= from),
          "what is missing is told, and nothing else");
  require(replay.cut_off.empty() == (is_damaged || frames.how == SegmentEnd::whole),
          "what is cut off is told");
  if (state.position > journal_position_max) return;  // no tracker gets there
  const std::string saved = encode_snapshot({segment.header->owner, 1, base::WallTime{}, state});
  const auto loaded = decode_snapshot(saved);
  require(loaded && encode_snapshot(*loaded) == saved, "what was replayed survives the next save");
}

void check(const std::string& bytes) {
  const fuzz::MemoryBound bound(bytes.size());
  std::string_view rest = bytes;
  const auto header = take_segment_header(rest);
  if (!header) {
    require(rest == bytes, "what is no header is left where it is");
    holds_frame({}, bytes);
    return;
  }
  std::string encoded = encode_segment_header(*header);
  require(encoded.size() == bytes.size() - rest.size(), "a header is no longer than it says");
  std::string_view again = encoded;
  require(take_segment_header(again).value() == *header && again.empty(), "a header survives being written");

  LoadedJournal journal;
  journal.segments.push_back(load_segment(bytes, header->start, header->instance));
  const SegmentFrames& segment = journal.segments.front().frames;
  check_frames(*header, segment, rest);
  check_replay(journal, header->start, true);
  check_replay(journal, header->follows, true);
  if (!segment.frames.empty()) {
    check_replay(journal, segment.frames[segment.frames.size() / 2].position, false);
  }
}

}  // namespace
}  // namespace spoor::tracker

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(spoor::fuzz::text_of(data, size));
  spoor::tracker::check(bytes);
  const std::string repaired = spoor::tracker::repaired(bytes);
  if (repaired != bytes) spoor::tracker::check(repaired);
  return 0;
}
