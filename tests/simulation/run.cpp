#include "tests/simulation/world.h"

#include <algorithm>
#include <utility>

namespace spoor::simulation {

Outcome run(const Script& script, Bug bug) {
  World world(script.setup, bug);
  Outcome outcome;
  for (const Action& action : script.actions) {
    ++outcome.actions;
    world.act(action);
    if (world.violation()) break;
  }
  if (!world.violation()) world.settle();
  outcome.violation = world.violation();
  outcome.figures = world.figures();
  return outcome;
}

Script shrink(const Script& script, Bug bug) {
  Script best = script;
  best.actions.resize(run(script, bug).actions);
  for (std::size_t chunk = std::max<std::size_t>(best.actions.size() / 2, 1);; chunk = chunk / 2) {
    for (std::size_t at = 0; at < best.actions.size();) {
      Script shorter = best;
      const auto from = shorter.actions.begin() + static_cast<std::ptrdiff_t>(at);
      const auto left = static_cast<std::size_t>(shorter.actions.end() - from);
      shorter.actions.erase(from, from + static_cast<std::ptrdiff_t>(std::min(chunk, left)));
      const Outcome outcome = run(shorter, bug);
      if (outcome.violation) {
        shorter.actions.resize(std::min(outcome.actions, shorter.actions.size()));
        best = std::move(shorter);
      } else {
        at += chunk;
      }
    }
    if (chunk == 1) break;
  }
  return best;
}

}  // namespace spoor::simulation
