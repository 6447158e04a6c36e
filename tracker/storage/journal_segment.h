// One file of the journal: a header, then frames, each with the records of one commit and a checksum
// (docs/formats.md, "Journal"). Encodes and decodes only; no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tracker/cycles/ids.h"
#include "tracker/cycles/journal_record.h"
#include "tracker/storage/snapshot.h"

namespace spoor::tracker {

inline constexpr std::uint8_t journal_version = 2;

struct SegmentHeader {
  NodeIdentity owner;
  InstanceId instance;
  JournalPosition start = 0;  // of its first record
  // No record before `start` is missing if all records before `follows` are known. Positions between the two
  // were never used: a run begins far after the end of the last run, which a snapshot may have passed.
  JournalPosition follows = 0;

  friend bool operator==(const SegmentHeader&, const SegmentHeader&) = default;
};

std::string encode_segment_header(const SegmentHeader& header);

// Removes the header from `bytes` and returns it. Fails with Errc::snapshot_unknown (another version) or
// Errc::journal_corrupt; `bytes` is then unchanged.
base::Result<SegmentHeader> take_segment_header(std::string_view& bytes);

// A frame of journal_version. `position` is that of the first record.
std::string encode_frame(const InstanceId& instance, JournalPosition position, std::string_view records);

// The file ends at its last byte that is not zero; zeros behind it are written ahead (Journal::append).
enum class SegmentEnd {
  whole,    // The file ends with the last byte of a frame.
  torn,     // The file ends within a frame: an unfinished write.
  broken,   // The last frame has its full length, but not the bytes that were written.
  damaged,  // A frame that can't be read is followed by more data, so it was once written completely.
};

struct SegmentFrames {
  struct Frame {
    JournalPosition position = 0;
    std::string_view records;
  };
  std::vector<Frame> frames;  // contiguous, from the header's start
  JournalPosition end = 0;    // after the last frame
  SegmentEnd how = SegmentEnd::whole;
};

// Reads the frames of a segment up to the first that can't be read. `bytes` begin after the header; the
// frames view them. The time is proportional to the size of `bytes`, whatever they contain.
SegmentFrames read_frames(const SegmentHeader& header, std::string_view bytes);

// Whether `bytes` contain the header of a frame of this instance, at any offset.
bool holds_frame(const InstanceId& instance, std::string_view bytes);

}  // namespace spoor::tracker
