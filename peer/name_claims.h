// Which address may answer under a node's name (design: "Cycles in a cluster").
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tracker/cursor.h"

namespace spoor::peer {

// The home of a name is the address where it was read last. It is kept among the cursors, under this key.
std::string home_key(const std::string& url, const std::string& name);
bool is_home_key(const std::string& key);

// Keeps `url` as the only home of the name, or none where it is empty.
void set_home(tracker::Cursors& cursors, const std::string& name, const std::string& url);

// Forgets the homes of names that have no cursor any more.
void forget_homes(tracker::Cursors& cursors);

// What a tracker says of itself at an address.
struct NameClaim {
  std::string url;
  std::string name;
  tracker::InstanceId instance;
  std::uint64_t run = 0;
  bool is_proven = false;  // by a certificate that the operator's own authority issued for the name
};

enum class Verdict {
  accepted,  // asked for its marks under this name
  second,    // another address of a tracker that is asked already
  rival,     // another tracker than the one accepted, under the same name
  disputed,  // the name belongs to an address that does not respond: its cursor must not move
};

struct JudgedClaim {
  Verdict verdict = Verdict::accepted;
  std::string why = {};      // disputed: a sentence for the operator
  std::string warning = {};  // accepted though the name was found elsewhere before
};

struct ClaimContext {
  const tracker::Cursors& known;  // of the last stored scan
  std::string own_name;           // may be empty: not known
  std::string own_url;            // where the node's own daemon is
  // Where a source of members says that a name is.
  std::map<std::string, std::set<std::string>> listed_homes;
  // Addresses that sources of members list now, and where no tracker responded. Not those that departed.
  std::set<std::string> silent;
};

// A judgement for each claim. A claim is believed where it is proven, or else comes from the name's home.
// Without either, a name that was read before moves only once its home is no longer listed, or responds under
// another name, and so does the address where a source of members says that it is now. A name that was never
// read is at home where a source of members lists it, or else belongs to the first claim. Cursors that were
// stored before there were homes stand for them: by the addresses where the instance of the name's cursor
// answered last.
//
// Pure; `claims` come in the order of the members.
std::vector<JudgedClaim> judge_claims(std::span<const NameClaim> claims, const ClaimContext& context);

}  // namespace spoor::peer
