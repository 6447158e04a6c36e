// Decides which address may respond under a node's name (design: "Cycles in a cluster").
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tracker/cycles/peer_book.h"

namespace spoor::peer {

// The identity that a tracker reports at an address.
struct NameClaim {
  std::string url;
  std::string name;
  tracker::InstanceId instance;
  std::uint64_t run = 0;
  bool is_proven = false;  // by a certificate that the operator's own authority issued for the name
};

enum class Verdict {
  accepted,  // queried for its marks under this name
  second,    // another address of an accepted tracker
  rival,     // another tracker under the name of an accepted one
  disputed,  // the name belongs to an address that does not respond: its cursor must not move
};

struct JudgedClaim {
  Verdict verdict = Verdict::accepted;
  std::string why = {};      // disputed: a sentence for the operator
  std::string warning = {};  // accepted: a sentence for the operator, if the name was ambiguous or has moved
};

struct ClaimContext {
  const tracker::PeerBook& known;  // of the last stored scan
  std::string own_name;            // may be empty: not known
  std::string own_url;             // of the node's own daemon
  // The addresses at which a source of members lists a name.
  std::map<std::string, std::set<std::string>> listed_homes;
  // Addresses that sources of members list now, and where no tracker responded.
  std::set<std::string> silent;
  // Of these: where no daemon runs, as their sources say.
  std::set<std::string> not_alive = {};
};

// Returns a verdict for each claim. A claim is accepted if it is proven, or else if it comes from the name's
// home. Otherwise, a name that was read before moves only if its home is no longer listed or responds under
// another name, and the same is true of the address at which a source of members lists the name now; one that
// its source says is not alive does not keep the name from another listed one. The home of a name that was
// never read is where a source of members lists it; without a listing, the first claim is accepted.
//
// Pure function. `claims` are in the order of the members.
std::vector<JudgedClaim> judge_claims(std::span<const NameClaim> claims, const ClaimContext& context);

}  // namespace spoor::peer
