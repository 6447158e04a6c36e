#include "daemon/process/log_limit.h"

#include <iterator>
#include <utility>

namespace spoor::daemon {

std::optional<std::uint64_t> LogLimit::note(const std::string& key, std::uint64_t events,
                                            base::SteadyTime now) {
  auto known = entries_.find(key);
  if (known == entries_.end() && entries_.size() >= keys_max) {
    for (auto at = entries_.begin(); at != entries_.end();) {
      const bool is_over = now - at->second.logged_at.value_or(now) >= pause;
      if (is_over) others_.unlogged += at->second.unlogged;
      at = is_over ? entries_.erase(at) : std::next(at);
    }
  }
  if (known == entries_.end() && entries_.size() < keys_max) known = entries_.try_emplace(key).first;
  Entry& entry = known == entries_.end() ? others_ : known->second;
  entry.unlogged += events;
  if (entry.logged_at && now - *entry.logged_at < pause) return std::nullopt;
  entry.logged_at = now;
  return std::exchange(entry.unlogged, 0);
}

}  // namespace spoor::daemon
