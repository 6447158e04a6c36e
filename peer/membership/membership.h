// The members of the cluster: the merged listings of all sources (docs/cluster.md).
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/endpoint.h"
#include "base/error.h"
#include "base/file_system.h"
#include "peer/membership/last_known_members.h"
#include "peer/membership/member_source.h"
#include "tracker/cycles/ids.h"

namespace spoor::peer {

struct MembershipView {
  std::vector<base::Endpoint> endpoints;     // the own one first, each once, those that are not alive last
  std::vector<base::Endpoint> departed;      // no longer listed, none of them above
  std::vector<ExpectedPeer> expected;        // a peer of that name must respond at some endpoint
  std::vector<std::string> gaps;             // why marks may be missing that no peer reports
  std::vector<std::string> unknown_sources;  // sources that failed, and why: members may be missing
  std::set<std::string> named_urls;          // the own endpoint and `peers.static`: named by the operator
  std::string checkpoint;                    // to be stored with the scan
};

// Reads all sources, and remembers members that are no longer listed until they are evicted. Not thread-safe.
class Membership {
 public:
  struct Options {
    std::optional<base::Endpoint> own;  // of the node's own daemon
    std::vector<base::Endpoint> static_endpoints;
    std::vector<MemberSource*> sources;  // must outlive it; a null one is skipped
  };
  // `<data_dir>/members.json`.
  struct Store {
    base::FileSystem& files;
    std::filesystem::path data_dir;
    const base::Clock& clock;
    bool read_only = false;  // for a dry run
  };

  // Without a store the last-known members are kept in memory, and departed ones are not kept. All references
  // must outlive it.
  explicit Membership(Options options, std::optional<Store> store = {});

  // Blocks as long as the sources do. A source that fails lists its last-known members.
  MembershipView read(const LastScan& last);

  // Stores which members of the last read() responded, whatever the result of the scan: a member that
  // responded is kept, one that was silent for too long is evicted. Without this call no member is evicted.
  // `cursors` are those of the last stored scan. On an error the file is unchanged.
  base::Result<> store_responses(const AddressStates& responses, const tracker::Cursors& cursors);

  // The listings of the last read().
  const std::vector<SourceListing>& listings() const { return listings_; }
  // After the last read().
  const LastKnownMembers& last_known() const { return last_known_; }

 private:
  std::string load();
  std::string store_listed(const LastKnownMembers& before);
  LastKnownRules rules() const;

  const Options options_;
  const std::optional<Store> store_;
  LastKnownMembers last_known_;
  std::vector<SourceListing> listings_;
  bool is_readable_ = true;  // the stored members are known, or lost for good
  bool is_damaged_ = false;  // the file has no meaning
};

}  // namespace spoor::peer
