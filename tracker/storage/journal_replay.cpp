#include "tracker/storage/journal_replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace spoor::tracker {
namespace {

class Replayer {
 public:
  Replayer(TrackerState base, const Tracker::Options& options, const base::Clock& clock, bool same_boot)
      : position_(base.position),
        opened_at_(base.current_opened_at),
        tracker_(replay_options(options), clock, std::move(base)),
        same_boot_(same_boot) {}

  void run(const LoadedJournal& journal) {
    if (!journal.error.empty()) return miss(journal.error);
    // A segment without a header proves nothing: the journal must begin with one that has a header.
    const auto& segments = journal.segments;
    const auto has_header = [](const LoadedSegment& segment) { return segment.header.has_value(); };
    auto first = std::find_if(segments.begin(), segments.end(), has_header);
    if (first == segments.end()) {
      return miss(segments.empty() ? "there is no journal after the snapshot" : segments.back().error);
    }
    // Segments before the state's position are skipped. If all segments begin later, the header of the first
    // one shows whether records are missing before it.
    for (auto segment = first; segment != segments.end() && segment->start <= position_; ++segment) {
      if (has_header(*segment)) first = segment;
    }
    for (auto segment = first; segment != segments.end(); ++segment) {
      take(*segment, segment + 1 == segments.end());
    }
  }

  Replay finish() && {
    Replay replay{tracker_.state(), position_, std::move(missing_), std::move(cut_off_)};
    replay.state.current_opened_at = opened_at_;
    replay.state.position = position_;
    return replay;
  }

 private:
  // Opens the same levels as the records, independent of the configuration. Joins tree marks by their number
  // only, like versions that did not record the ancestors.
  static Tracker::Options replay_options(Tracker::Options options) {
    options.opens_levels = false;
    options.tree_bytes_max = TreeMarks::no_bytes_max;
    return options;
  }

  void take(const LoadedSegment& segment, bool is_last) {
    if (!segment.header) {
      // A segment whose creation was interrupted holds no acknowledged records.
      const bool is_empty = segment.bytes != nullptr && !segment.had_frames;
      if (!is_empty) miss(segment.error);
      return;
    }
    if (segment.header->follows > position_) {
      miss(fmt::format("a part of the journal before {} is missing", segment.file_name));
    }
    for (const SegmentFrames::Frame& frame : segment.frames.frames) take(frame, segment.file_name);
    position_ = std::max(position_, segment.frames.end);
    if (segment.frames.how != SegmentEnd::whole) judge_end(segment, is_last);
  }

  void judge_end(const LoadedSegment& segment, bool is_last) {
    const SegmentEnd how = segment.frames.how;
    // On the same boot, only bytes that were not written yet can be missing at the end.
    if (how == SegmentEnd::damaged || (how == SegmentEnd::broken && is_last && same_boot_)) {
      miss(fmt::format("{} is damaged after position {}", segment.file_name, segment.frames.end));
    } else if (is_last) {
      cut_off_ = fmt::format("an unfinished write at the end of {} was cut off", segment.file_name);
    }
  }

  void take(const SegmentFrames::Frame& frame, const std::string& file_name) {
    JournalPosition at = frame.position;
    for (std::string_view records = frame.records; !records.empty();) {
      const std::size_t before = records.size();
      const auto record = take_record(records);
      if (!record) return miss(fmt::format("{} at position {}: {}", file_name, at, record.error().message));
      // The state already has the records before its position; applying them again would mark a later cycle.
      if (at >= position_ && !apply(*record)) {
        return miss(fmt::format("{} at position {}: a level that does not fit in tracker.memory_limit",
                                file_name, at));
      }
      at += before - records.size();
    }
    position_ = std::max(position_, at);
  }

  bool apply(const JournalRecord& record) {
    if (const auto* mark = std::get_if<Mark>(&record)) {
      tracker_.mark({mark, 1});
    } else if (const auto* level = std::get_if<LevelRecord>(&record)) {
      return tracker_.open_level(level->shape);
    } else if (const auto& advance = std::get<AdvanceRecord>(record); tracker_.advance(advance.to)) {
      opened_at_ = advance.opened_at;
    }
    return true;
  }

  void miss(std::string what) {
    if (missing_.empty()) missing_ = std::move(what);
  }

  JournalPosition position_;
  base::WallTime opened_at_;
  Tracker tracker_;
  const bool same_boot_;
  std::string missing_;
  std::string cut_off_;
};

}  // namespace

Replay replay_journal(const LoadedJournal& journal, TrackerState base, const Tracker::Options& options,
                      const base::Clock& clock, bool same_boot) {
  Replayer replayer(std::move(base), options, clock, same_boot);
  replayer.run(journal);
  return std::move(replayer).finish();
}

}  // namespace spoor::tracker
