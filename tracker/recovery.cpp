#include "tracker/recovery.h"

#include <utility>

#include "tracker/journal_replay.h"

namespace spoor::tracker {
namespace {

// Runs begin this far apart: a snapshot can have got ahead of the journal, by what was marked while the
// journal could not be written, and its positions must not be given again to other records.
constexpr JournalPosition run_distance = JournalPosition{1} << 40U;

MarkSet everything() {
  MarkSet marks;
  marks.add_tree("");
  return marks;
}

// A gap over everything in a closed cycle: the current one, with what it holds.
TrackerState with_root_gap(TrackerState state) {
  MarkSet marks = *state.current_marks;
  marks.merge(everything());
  state.history.push_back({state.current, std::make_shared<const MarkSet>(std::move(marks))});
  state.current_marks = std::make_shared<const MarkSet>();
  state.current = next(state.current);
  return state;
}

// The state that the instance began with, as its journal tells.
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
  Recoverer(const Remains& remains, const Circumstances& now) : remains_(remains), now_(now) {}

  Recovery run() {
    if (has_record()) {
      go_on();
    } else {
      begin_without_record();
    }
    if (!recovery_.loss.empty()) begin_anew();
    return std::move(recovery_);
  }

 private:
  bool has_record() const { return remains_.record && *remains_.record; }
  const InstanceRecord& record() const { return **remains_.record; }

  void begin_without_record() {
    const auto& newest = remains_.snapshot.newest;
    if (!remains_.record) {
      recovery_.loss = remains_.record.error().message;
    } else if (newest) {
      recovery_.loss = "node.data_dir does not remember the snapshot that was found";
    } else if (remains_.snapshot.any_lost) {
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
      recovery_.loss = "other paths were ignored than from now on (section 'namespace')";
    }
    const auto& newest = remains_.snapshot.newest;
    if (!recovery_.loss.empty() && newest && newest->state.current > recovery_.state.current) {
      recovery_.state = newest->state;  // of another instance, but it knows how far the numbers got
    }
    recovery_.follows = recovery_.state.position;
    recovery_.state.position += run_distance;
  }

  bool newest_is_ours() const {
    const auto& newest = remains_.snapshot.newest;
    return newest && newest->state.instance == record().instance;
  }

  void go_on_after_clean_stop() {
    const auto& newest = remains_.snapshot.newest;
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
    TrackerState base = newest_is_ours() ? remains_.snapshot.newest->state : born_as(record(), now_.clock);
    auto replayed = replay_journal(remains_.journal, std::move(base), now_.tracker, now_.clock, same_boot());
    recovery_.state = std::move(replayed.state);
    recovery_.cut_off = std::move(replayed.cut_off);
    if (recovery_.loss.empty()) recovery_.loss = std::move(replayed.missing);
  }

  bool same_boot() const { return !now_.boot_id.empty() && record().boot_id == now_.boot_id; }

  // Of a run that did not end cleanly.
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

  const Remains& remains_;
  const Circumstances& now_;
  Recovery recovery_;
};

}  // namespace

Recovery recover(const Remains& remains, const Circumstances& now) { return Recoverer(remains, now).run(); }

}  // namespace spoor::tracker
