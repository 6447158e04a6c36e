#pragma once

#include <map>
#include <string>

#include "tracker/cycles/ids.h"

namespace spoor::tracker {

// The first cycle of one peer whose marks one scanner has not walked yet. Valid only for the instance
// that issued it.
struct Cursor {
  InstanceId instance;
  CycleId cycle;

  friend bool operator==(const Cursor&, const Cursor&) = default;
};

// By peer name.
using Cursors = std::map<std::string, Cursor>;

}  // namespace spoor::tracker
