// The body of GET /v1/status, and the same in one line.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "daemon/membership/etcd_membership.h"
#include "daemon/membership/peer_watch.h"
#include "daemon/status/watched_drives.h"
#include "scanner/history/usage_limits.h"
#include "tracker/cycles/tracker.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {

// What came in to be marked since the start, as GET /v1/status and /metrics report it.
struct MarkCounters {
  std::uint64_t accepted = 0;  // marks acknowledged, known ones included
  std::uint64_t ignored = 0;   // paths that the namespace rules exclude, and events that mark nothing
  std::uint64_t added = 0;     // of those accepted, marks that set something new
  std::uint64_t rejected = 0;  // requests refused

  std::uint64_t unknown_events = 0;  // of those ignored, S3 events of an unknown name
  std::uint64_t invalid_keys = 0;    // S3 events whose key is not a path: marked as a tree

  // Of those accepted, by Access::identity_of(); beyond identities_max all further ones are "other".
  static constexpr std::size_t identities_max = 256;
  struct OfIdentity {
    std::uint64_t accepted = 0;
    base::WallTime last_at{};
  };
  std::map<std::string, OfIdentity> identities = {};
};

struct StatusInput {
  const tracker::NodeIdentity& node;
  const std::string& version;
  std::chrono::nanoseconds uptime;
  tracker::TrackerStatus tracker;
  MarkCounters counters;
  const std::optional<tracker::SavedSnapshot>& last_save;
  const std::optional<tracker::SavedSnapshot>& last_durable_save;
  std::uint64_t failed_saves;
  tracker::Durability durability;
  tracker::JournalStatus journal;
  std::string health_error;      // why marks are not acknowledged at present; empty if they are
  std::vector<PeerState> peers;  // without this node
  PeerWatch::TlsExpiry peer_tls;
  const EtcdStatus* etcd;  // null if it is not configured
  const std::vector<DnsState>& dns;
  std::vector<WatchState> watch;
  const std::vector<scanner::LimitState>& limits;  // as the last scan found them
};

nlohmann::ordered_json status_json(const StatusInput& input);

// Null if it is not known.
nlohmann::ordered_json space_json(const std::optional<base::DiskSpace>& space);

nlohmann::ordered_json drives_json(const std::vector<tracker::DriveState>& states);

// One save, as in the response to POST /v1/snapshot.
nlohmann::ordered_json snapshot_json(const tracker::SavedSnapshot& saved);

// The state of the node in one line for people: "cycle 12, 2 of 3 peers up, journal ok", or its health
// errors.
std::string status_line(tracker::CycleId current, const std::vector<PeerState>& peers,
                        tracker::Durability durability, const std::vector<std::string>& health_errors);

}  // namespace spoor::daemon
