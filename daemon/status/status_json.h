// The body of GET /v1/status.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/membership/etcd_membership.h"
#include "daemon/membership/peer_watch.h"
#include "daemon/status/mark_counters.h"
#include "tracker/cycles/tracker.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {

struct StatusInput {
  const tracker::NodeIdentity& node;
  const std::string& version;
  std::chrono::nanoseconds uptime;
  const tracker::TrackerStatus& tracker;
  const MarkCounters& counters;
  const std::optional<tracker::SavedSnapshot>& last_save;
  const std::optional<tracker::SavedSnapshot>& last_durable_save;
  std::uint64_t failed_saves;
  tracker::Durability durability;
  const tracker::JournalStatus& journal;
  const std::string& health_error;  // why marks are not acknowledged at present; empty if they are
  const std::vector<PeerState>& peers;
  PeerWatch::TlsExpiry peer_tls;
  const EtcdStatus* etcd;  // null if it is not configured
  const std::vector<DnsState>& dns;
};

nlohmann::ordered_json status_json(const StatusInput& input);

nlohmann::ordered_json drives_json(const std::vector<tracker::DriveState>& states);

// One save, as in the response to POST /v1/snapshot.
nlohmann::ordered_json snapshot_json(const tracker::SavedSnapshot& saved);

}  // namespace spoor::daemon
