#pragma once

#include <map>
#include <string>

#include "tracker/ids.h"

namespace spoor::tracker {

// For one scanner and one peer: from which cycle on that peer's marks are still to be walked. It
// means something only to the instance that gave it.
struct Cursor {
  InstanceId instance;
  CycleId cycle;

  friend bool operator==(const Cursor&, const Cursor&) = default;
};

// By peer name.
using Cursors = std::map<std::string, Cursor>;

}  // namespace spoor::tracker
