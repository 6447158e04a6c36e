// The output of `spoor usage --csv`.
#pragma once

#include <map>
#include <string>

#include "tests/support/tree_totals.h"

namespace spoor::watch {

// The totals of each directory by its path, the root's by an empty one.
std::map<std::string, support::TreeTotals> read_usage_csv(const std::string& text);

}  // namespace spoor::watch
