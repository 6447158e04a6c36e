#include "tracker/storage/recovery.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/byte_codec.h"
#include "tracker/errors.h"
#include "tracker/storage/mark_set_codec.h"

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
    Replay replay{tracker_.state(), std::move(missing_), std::move(cut_off_)};
    replay.state.current_opened_at = opened_at_;
    replay.state.position = position_;
    return replay;
  }

 private:
  // Opens the same levels as the records, independent of the configuration.
  static Tracker::Options replay_options(Tracker::Options options) {
    options.opens_levels = false;
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
      if (const auto applied = at >= position_ ? apply(*record) : base::Result<>(); !applied)
        return miss(fmt::format("{} at position {}: {}", file_name, at, applied.error().message));
      at += before - records.size();
    }
    position_ = std::max(position_, at);
  }

  base::Result<> apply(const JournalRecord& record) {
    if (const auto* mark = std::get_if<Mark>(&record)) {
      tracker_.mark({mark, 1});
    } else if (const auto* level = std::get_if<LevelRecord>(&record)) {
      if (!tracker_.open_level(level->shape))
        return base::Error(Errc::journal_corrupt, "a level that does not fit in tracker.memory_limit");
    } else if (const auto* adopt = std::get_if<AdoptRecord>(&record)) {
      base::ByteReader in(adopt->marks);
      auto marks = decode_mark_set(in);
      if (!marks) return marks.error();
      tracker_.adopt(std::make_shared<const MarkSet>(*std::move(marks)), {});
      opened_at_ = adopt->opened_at;
    } else if (const auto& advance = std::get<AdvanceRecord>(record); tracker_.advance(advance.to)) {
      opened_at_ = advance.opened_at;
    }
    return {};
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

// The distance between the positions of two runs: a snapshot can be ahead of the journal, by the marks made
// while the journal could not be written, and its positions must not be reused for other records.
constexpr JournalPosition run_distance = JournalPosition{1} << 40U;

MarkSet everything() {
  MarkSet marks;
  marks.add_tree("");
  return marks;
}

// Closes the current cycle, with its marks and a gap over everything.
TrackerState with_root_gap(TrackerState state) {
  MarkSet marks = *state.current_marks;
  marks.merge(everything());
  state.history.push_back({state.current, std::make_shared<const MarkSet>(std::move(marks))});
  state.current_marks = std::make_shared<const MarkSet>();
  state.current = next(state.current);
  return state;
}

// The state that the instance began with: the base of its whole journal.
TrackerState born_as(const InstanceRecord& record, const base::Clock& clock) {
  TrackerState state = Tracker::born(record.instance, clock);
  const Birth birth = record.birth.value_or(Birth());
  if (birth.complete) {
    state.current = birth.cycle;
    return state;
  }
  state.complete_since_birth = false;
  state.current = {birth.cycle.value - 1};
  return with_root_gap(std::move(state));
}

class Recoverer {
 public:
  Recoverer(const RecoveryInput& input, const RecoveryContext& now) : input_(input), now_(now) {}

  Recovery run() {
    if (has_record()) {
      go_on();
    } else {
      begin_without_record();
    }
    if (has_record() && record().membership == Membership::retired) {
      begin_after_retirement();
    } else if (!recovery_.loss.empty()) {
      begin_anew();
    }
    return std::move(recovery_);
  }

 private:
  bool has_record() const { return input_.record && *input_.record; }
  const InstanceRecord& record() const { return **input_.record; }

  void begin_without_record() {
    const auto& newest = input_.snapshot.newest;
    if (!input_.record) {
      recovery_.loss = input_.record.error().message;
    } else if (newest) {
      recovery_.loss = "node.data_dir has no record of the snapshot that was found";
    } else if (input_.snapshot.any_lost) {
      recovery_.loss = "no snapshot could be loaded";
    }
    recovery_.state = newest ? newest->state : Tracker::born(InstanceId::random(), now_.clock);
    recovery_.birth = Birth{recovery_.state.current, true};
  }

  void go_on() {
    recovery_.birth = record().birth;
    if (record().clean_stop) {
      go_on_after_clean_stop();
    } else {
      recovery_.loss = loss_by_durability();
      replay();
    }
    if (recovery_.loss.empty() && record().rules != now_.rules) {
      recovery_.loss = "the rules on ignored paths have changed (section 'namespace')";
    }
    const auto& newest = input_.snapshot.newest;
    if (!recovery_.loss.empty() && newest && newest->state.current > recovery_.state.current) {
      recovery_.state = newest->state;  // of another instance, but cycle numbers must not decrease
    }
    recovery_.follows = recovery_.state.position;
    recovery_.state.position += run_distance;
  }

  bool newest_is_ours() const {
    const auto& newest = input_.snapshot.newest;
    return newest && newest->state.instance == record().instance;
  }

  void go_on_after_clean_stop() {
    const auto& newest = input_.snapshot.newest;
    if (!newest) {
      recovery_.loss = "the last run's snapshot is gone";
    } else if (!newest_is_ours() ||
               CleanStop{newest->generation, newest->state.position} != *record().clean_stop) {
      recovery_.loss = "the snapshot found is not the one the last run ended with";
    }
    recovery_.state = newest ? newest->state : Tracker::born(record().instance, now_.clock);
  }

  void replay() {
    if (!newest_is_ours() && !record().birth && recovery_.loss.empty()) {
      recovery_.loss = "no snapshot of the last run could be loaded";
    }
    TrackerState base = newest_is_ours() ? input_.snapshot.newest->state : born_as(record(), now_.clock);
    auto replayed = replay_journal(input_.journal, std::move(base), now_.tracker, now_.clock, same_boot());
    recovery_.state = std::move(replayed.state);
    recovery_.cut_off = std::move(replayed.cut_off);
    if (recovery_.loss.empty()) recovery_.loss = std::move(replayed.missing);
  }

  bool same_boot() const { return !now_.boot_id.empty() && record().boot_id == now_.boot_id; }

  // For a run that did not stop cleanly.
  std::string loss_by_durability() const {
    switch (record().durability) {
      case Durability::disk:
        return {};
      case Durability::os:
        return same_boot() ? "" : "the machine went down, and durability was 'os'";
      case Durability::memory:
        break;
    }
    return "the last run did not end cleanly, and durability was 'memory'";
  }

  void begin_anew() {
    TrackerState& state = recovery_.state;
    state.instance = InstanceId::random();
    state.complete_since_birth = false;
    state.current_opened_at = now_.clock.wall_now();
    state = with_root_gap(std::move(state));
    state.position = 0;
    recovery_.birth = Birth{state.current, false};
    recovery_.follows = 0;
  }

  // Another tracker has all that the instance acknowledged: nothing is lost here.
  void begin_after_retirement() {
    TrackerState state = Tracker::born(InstanceId::random(), now_.clock);
    state.current = state.oldest_kept = next(recovery_.state.current);
    recovery_ = {};
    recovery_.state = std::move(state);
    recovery_.birth = Birth{recovery_.state.current, true};
  }

  const RecoveryInput& input_;
  const RecoveryContext& now_;
  Recovery recovery_;
};

}  // namespace

Replay replay_journal(const LoadedJournal& journal, TrackerState base, const Tracker::Options& options,
                      const base::Clock& clock, bool same_boot) {
  Replayer replayer(std::move(base), options, clock, same_boot);
  replayer.run(journal);
  return std::move(replayer).finish();
}

Recovery recover(const RecoveryInput& input, const RecoveryContext& now) {
  return Recoverer(input, now).run();
}

}  // namespace spoor::tracker
