#include "daemon/status/status_line.h"

#include <fmt/format.h>

#include <algorithm>

namespace spoor::daemon {
namespace {

std::string peers_text(const std::vector<PeerState>& peers) {
  if (peers.empty()) return "no peers";
  const auto up = std::ranges::count(peers, "up", &PeerState::state);
  return fmt::format("{} of {} peer{} up", up, peers.size(), peers.size() == 1 ? "" : "s");
}

}  // namespace

std::string status_line(tracker::CycleId current, const std::vector<PeerState>& peers,
                        tracker::Durability durability, const std::vector<std::string>& health_errors) {
  const std::string start = fmt::format("cycle {}, {}", current.value, peers_text(peers));
  if (!health_errors.empty()) return fmt::format("{}; trouble: {}", start, fmt::join(health_errors, "; "));
  return start + (durability == tracker::Durability::memory ? ", no journal" : ", journal ok");
}

}  // namespace spoor::daemon
