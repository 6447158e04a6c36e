#include "tracker/storage/recovery.h"

#include <utility>

#include "tracker/storage/journal_replay.h"

namespace spoor::tracker {
namespace {

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
    if (!recovery_.loss.empty()) begin_anew();
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

  const RecoveryInput& input_;
  const RecoveryContext& now_;
  Recovery recovery_;
};

}  // namespace

Recovery recover(const RecoveryInput& input, const RecoveryContext& now) {
  return Recoverer(input, now).run();
}

}  // namespace spoor::tracker
