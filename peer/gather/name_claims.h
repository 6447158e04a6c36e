// Decides which address may respond under a node's name (design: "Cycles in a cluster").
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tracker/cycles/ids.h"

namespace spoor::peer {

// The home of a name is the address where it was read last. It is stored among the cursors, under this key.
std::string home_key(const std::string& url, const std::string& name);
bool is_home_key(const std::string& key);

// The stored homes of a name: one, or none.
std::set<std::string> homes_of(const tracker::Cursors& known, const std::string& name);

// Stores `url` as the only home of the name, or removes the home if `url` is empty.
void set_home(tracker::Cursors& cursors, const std::string& name, const std::string& url);

// Removes the homes of names that have no cursor.
void forget_homes(tracker::Cursors& cursors);

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
  const tracker::Cursors& known;  // of the last stored scan
  std::string own_name;           // may be empty: not known
  std::string own_url;            // of the node's own daemon
  // The addresses at which a source of members lists a name.
  std::map<std::string, std::set<std::string>> listed_homes;
  // Addresses that sources of members list now, and where no tracker responded. Without departed addresses.
  std::set<std::string> silent;
};

// Returns a verdict for each claim. A claim is accepted if it is proven, or else if it comes from the name's
// home. Otherwise, a name that was read before moves only if its home is no longer listed or responds under
// another name, and the same is true of the address at which a source of members lists the name now. The home
// of a name that was never read is where a source of members lists it; without a listing, the first claim is
// accepted. Cursors from versions without homes: the homes are the addresses where the instance of the name's
// cursor responded last.
//
// Pure function. `claims` are in the order of the members.
std::vector<JudgedClaim> judge_claims(std::span<const NameClaim> claims, const ClaimContext& context);

}  // namespace spoor::peer
