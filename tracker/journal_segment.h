// One file of the journal: a header, then frames, each the records of one commit with a checksum of
// its own (docs/formats.md, "Journal"). Pure: bytes in, bytes out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tracker/ids.h"
#include "tracker/journal_record.h"
#include "tracker/snapshot.h"

namespace spoor::tracker {

inline constexpr std::uint8_t journal_version = 1;

struct SegmentHeader {
  NodeIdentity owner;
  InstanceId instance;
  JournalPosition start = 0;  // of its first record
  // Up to where the journal must be known for nothing to be missing before `start`. Positions between the
  // two were never given: a run begins far behind the last one's end, which a snapshot may have passed.
  JournalPosition follows = 0;

  friend bool operator==(const SegmentHeader&, const SegmentHeader&) = default;
};

std::string encode_segment_header(const SegmentHeader& header);

// Fails with Errc::snapshot_unknown (another version) or Errc::journal_corrupt. Takes the header off
// `bytes` where it succeeds.
base::Result<SegmentHeader> take_segment_header(std::string_view& bytes);

// `position` is that of the first record.
std::string encode_frame(const InstanceId& instance, JournalPosition position, std::string_view records);

enum class SegmentEnd {
  whole,    // The last byte of the last frame is the last of the file.
  torn,     // The file ends within a frame, as it does where a write was cut off.
  broken,   // The last frame has all its bytes, and they are not those that were written.
  damaged,  // Behind a frame that can't be read stands a later one: it once was whole.
};

struct SegmentFrames {
  struct Frame {
    JournalPosition position = 0;
    std::string_view records;
  };
  std::vector<Frame> frames;  // they follow on each other from the header's start
  JournalPosition end = 0;    // behind the last of them
  SegmentEnd how = SegmentEnd::whole;
};

// The frames of a segment from behind its header, up to where they can't be read. Frames view `bytes`.
// Takes time in proportion to the bytes, whatever they are.
SegmentFrames read_frames(const InstanceId& instance, JournalPosition start, std::string_view bytes);

// Whether anything in `bytes` is the header of a frame of this instance.
bool holds_frame(const InstanceId& instance, std::string_view bytes);

}  // namespace spoor::tracker
