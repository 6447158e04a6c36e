#include "peer/membership/absence_watch.h"

#include <algorithm>
#include <utility>

namespace spoor::peer {

std::vector<RegistryEntry> AbsenceWatch::look(std::span<const RegistryEntry> registry, base::SteadyTime now) {
  const auto step = last_look_ ? std::min(now - *last_look_, step_max_) : std::chrono::nanoseconds(0);
  last_look_ = now;
  std::map<std::string, Absence> absences;
  std::vector<RegistryEntry> due;
  for (const RegistryEntry& entry : registry) {
    if (entry.is_alive) continue;
    const std::string key = entry.member.node + ' ' + entry.member.url;
    Absence& absence = absences[key];
    absence.mod_revision = entry.mod_revision;
    const auto known = absences_.find(key);
    if (known != absences_.end() && known->second.mod_revision == entry.mod_revision) {
      absence.length = known->second.length + step;
    }
    if (absence.length > limit_) due.push_back(entry);
  }
  absences_ = std::move(absences);
  return due;
}

}  // namespace spoor::peer
