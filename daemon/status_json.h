// The body of GET /v1/status.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/api.h"

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
  const std::string& trouble;  // why nothing is acknowledged at present
  const std::vector<PeerState>& peers;
  PeerWatch::TlsExpiry peer_tls;
  const EtcdStatus* etcd;  // null where it is not configured
};

nlohmann::ordered_json status_json(const StatusInput& input);

nlohmann::ordered_json drives_json(const std::vector<tracker::DriveState>& states);

// One save, as POST /v1/snapshot answers it.
nlohmann::ordered_json snapshot_json(const tracker::SavedSnapshot& saved);

}  // namespace spoor::daemon
