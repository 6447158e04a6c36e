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
#include "daemon/durability/group_commit.h"
#include "daemon/durability/snapshot_scheduler.h"
#include "daemon/membership/etcd_membership.h"
#include "daemon/membership/peer_watch.h"
#include "daemon/status/scan_watch.h"
#include "daemon/status/watched_drives.h"
#include "scanner/usage/usage_limits.h"
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

// The parts of a node whose status it is.
struct StatusSources {
  tracker::NodeIdentity node;
  std::string version;
  tracker::Persistence& persistence;
  SnapshotScheduler& snapshot_scheduler;
  GroupCommit& group_commit;
  PeerWatch& peers;
  const EtcdMembership* etcd;  // null if it is not configured
  ScanWatch& scans;            // has the limits, as the last scan found them
  WatchedDrives& watched;
};

nlohmann::ordered_json status_json(const StatusSources& from, const MarkCounters& counters,
                                   std::chrono::nanoseconds uptime);

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
