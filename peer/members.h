// Whom a scan asks: the joined list of all sources of members.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_system.h"
#include "peer/address_state.h"
#include "peer/dns_resolver.h"
#include "peer/endpoint.h"
#include "peer/member_roll.h"
#include "tracker/cursor.h"

namespace spoor::peer {

struct RegistryAnswer {
  std::vector<Endpoint> listed;
  // Asked as if they had left: of no account where their node is found elsewhere.
  std::vector<Endpoint> lingering;
  // URLs of members that were silent for long before they left: forgotten once they are silent again.
  std::set<std::string> struck = {};
};

// A registry that is asked by somebody else, such as etcd.
struct MemberRegistry {
  std::string label;  // its words in reports and in the roll
  std::function<base::Result<RegistryAnswer>()> list;
  // How long somebody who left it is still asked without an answer.
  std::chrono::milliseconds forget_after = std::chrono::hours(24);
};

struct MemberSources {
  Endpoint own;
  std::vector<Endpoint> static_endpoints;
  std::vector<DnsSource> dns;
  std::optional<MemberRegistry> registry;
  // How long an address that its DNS name no longer has is still asked without an answer.
  std::chrono::milliseconds forget_after = std::chrono::hours(24);
};

// Where the roll of members is, and what it is held against.
struct RollStore {
  base::FileSystem& files;
  std::filesystem::path data_dir;
  const base::Clock& clock;
  // Of the last stored scan: whoever has one there may be forgotten.
  const tracker::Cursors& cursors;
  // Leaves the roll as it is: for a dry run.
  bool read_only = false;
};

struct Members {
  std::set<std::string> named_urls;  // that the operator named: the own one and the static ones
  std::vector<Endpoint> endpoints;   // the own one first, then those listed now; none twice
  std::vector<Endpoint> lingering;   // listed until lately, none of them above
  std::vector<std::string> unknown;  // sources that could not be asked, in words: somebody may be missing

  // For settle_members().
  MemberRoll roll;
  std::vector<SourceAnswer> answers;
  bool may_store = false;   // whether `roll` is what is known of all
  bool is_damaged = false;  // what is stored means nothing
};

// Asks all sources, the DNS names side by side. What can't be asked says who was there last, and stands in
// `unknown`; so does a roll that can't be read or written. Blocks for as long as the resolver and the
// registry do.
Members find_members(const MemberSources& sources, Resolver& resolver, const RollStore& store);

// Stores what came of asking them, once all were asked, whatever becomes of the scan: who answered is kept,
// who was silent for too long is not asked by the next scan. Without it nobody is ever forgotten. `store` is
// that of find_members(). On an error the roll is as it was.
base::Result<> settle_members(const Members& members, const AddressStates& asked, const RollStore& store);

}  // namespace spoor::peer
