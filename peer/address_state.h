// What came of asking an address, whatever became of the node behind it.
#pragma once

#include <map>
#include <string>

namespace spoor::peer {

enum class AddressState {
  answered,  // a tracker of this cluster answered there
  silent,    // nobody did, or nobody of this cluster
  left,      // nobody did; it lingers, and its tracker answered at another address
};

using AddressStates = std::map<std::string, AddressState>;  // by URL

}  // namespace spoor::peer
