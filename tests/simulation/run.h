// Runs whole scripts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tests/simulation/world.h"

namespace spoor::simulation {

struct Outcome {
  std::optional<std::string> violation;
  std::size_t actions = 0;  // run until the violation or the end
  Figures figures;
};

// Runs the script up to the first violation, or to its end and until everything has settled.
Outcome run(const Script& script, Bug bug = Bug::none);

// Returns a much shorter script with the same violation or another one (delta debugging: Zeller and
// Hildebrandt 2002).
Script shrink(const Script& script, Bug bug = Bug::none);

}  // namespace spoor::simulation
