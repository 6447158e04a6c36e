#include "daemon/log_limit.h"

#include <utility>

namespace spoor::daemon {

std::optional<std::uint64_t> LogLimit::note(const std::string& key, std::uint64_t events,
                                            base::SteadyTime now) {
  if (const auto known = entries_.find(key); known != entries_.end()) {
    Entry& entry = known->second;
    entry.unlogged += events;
    if (now - entry.logged_at < pause) return std::nullopt;
    entry.logged_at = now;
    return std::exchange(entry.unlogged, 0);
  }
  if (entries_.size() >= keys_max) {
    std::erase_if(entries_, [&](const auto& each) { return now - each.second.logged_at >= pause; });
    if (entries_.size() >= keys_max) return std::nullopt;
  }
  entries_[key].logged_at = now;
  return events;
}

}  // namespace spoor::daemon
