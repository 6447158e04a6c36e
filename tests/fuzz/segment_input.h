// A segment of a journal that never was a file.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "tracker/storage/journal.h"

namespace spoor::tracker {

// As load_journal() finds one of this instance that begins at `start` by its name.
inline LoadedSegment load_segment(std::string bytes, JournalPosition start, const InstanceId& instance) {
  LoadedSegment segment;
  segment.file_name = "segment";
  segment.start = start;
  segment.bytes = std::make_unique<const std::string>(std::move(bytes));
  std::string_view rest = *segment.bytes;
  const auto header = take_segment_header(rest);
  if (!header) {
    segment.error = header.error().message;
    segment.had_frames = holds_frame(instance, rest);
    return segment;
  }
  segment.header = *header;
  segment.frames = read_frames(*header, rest);
  return segment;
}

}  // namespace spoor::tracker
