#pragma once

#include <map>
#include <string>

namespace spoor::peer {

// The result of the requests to an address, whatever node is behind it.
enum class AddressState {
  answered,  // a tracker of this cluster responded
  silent,    // no tracker of this cluster responded
  left,      // silent and departed; its tracker responded at another address
};

using AddressStates = std::map<std::string, AddressState>;  // by URL

}  // namespace spoor::peer
