// Whole scripts, and what they come to.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tests/simulation/world.h"

namespace spoor::simulation {

struct Outcome {
  std::optional<std::string> violation;
  std::size_t actions = 0;  // until then
  Figures figures;
};

// The script from the beginning up to the first violation, or to its end and until all is settled.
Outcome run(const Script& script, Bug bug = Bug::none);

// The same violation, or another one, from far fewer actions (delta debugging: Zeller and Hildebrandt 2002).
Script shrink(const Script& script, Bug bug = Bug::none);

}  // namespace spoor::simulation
