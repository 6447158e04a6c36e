// Whom a scan asks: the joined list of all sources of members.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_system.h"
#include "peer/dns_resolver.h"
#include "peer/endpoint.h"
#include "tracker/cursor.h"

namespace spoor::peer {

// A registry that is asked by somebody else, such as etcd.
struct MemberRegistry {
  std::string label;  // its words in reports and in the roll
  std::function<base::Result<std::vector<Endpoint>>()> list;
};

struct MemberSources {
  Endpoint own;
  std::vector<Endpoint> static_endpoints;
  std::vector<DnsSource> dns;
  std::optional<MemberRegistry> registry;
  // How long an address is still asked that its DNS name no longer has.
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
  std::vector<Endpoint> endpoints;   // the own one first, then those listed now; none twice
  std::vector<Endpoint> lingering;   // listed until lately, none of them above
  std::vector<std::string> unknown;  // sources that could not be asked, in words: somebody may be missing
};

// Asks all sources, the DNS names side by side. What can't be asked says who was there last, and stands in
// `unknown`; so does a roll that can't be read or written. Blocks for as long as the resolver and the
// registry do.
Members find_members(const MemberSources& sources, Resolver& resolver, const RollStore& store);

}  // namespace spoor::peer
