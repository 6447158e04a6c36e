#include "tracker/recovery.h"

#include <utility>

namespace spoor::tracker {
namespace {

// What makes it impossible to vouch for the loaded snapshot; empty where nothing does.
std::string find_loss(const base::Result<std::optional<InstanceRecord>>& record, const LoadedSnapshot& loaded,
                      std::string_view rules) {
  if (!record) return record.error().message;
  if (!*record) {
    if (loaded.newest) return "node.data_dir does not remember the snapshot that was found";
    return loaded.any_lost ? "no snapshot could be loaded" : "";
  }
  if (!(*record)->clean_generation) return "the last run did not end cleanly";
  if ((*record)->rules != rules) return "other paths were ignored than from now on (section 'namespace')";
  if (!loaded.newest) return "the last run's snapshot is gone";
  const bool same = loaded.newest->state.instance == (*record)->instance &&
                    loaded.newest->generation == *(*record)->clean_generation;
  return same ? "" : "the snapshot found is not the one the last run ended with";
}

TrackerState with_root_gap(TrackerState state) {
  MarkSet marks = *state.current_marks;
  marks.add_tree("");
  state.history.push_back({state.current, std::make_shared<const MarkSet>(std::move(marks))});
  state.current_marks = std::make_shared<const MarkSet>();
  state.current = next(state.current);
  return state;
}

}  // namespace

Recovery recover(const base::Result<std::optional<InstanceRecord>>& record, LoadedSnapshot loaded,
                 const base::Clock& clock, std::string_view rules) {
  Recovery recovery;
  recovery.loss = find_loss(record, loaded, rules);
  recovery.state =
      loaded.newest ? std::move(loaded.newest->state) : Tracker::born(InstanceId::random(), clock);
  if (!recovery.loss.empty()) {
    recovery.state.instance = InstanceId::random();
    recovery.state.complete_since_birth = false;
    recovery.state.current_opened_at = clock.wall_now();
    recovery.state = with_root_gap(std::move(recovery.state));
  }
  return recovery;
}

}  // namespace spoor::tracker
