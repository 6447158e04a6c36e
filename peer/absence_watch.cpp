#include "peer/absence_watch.h"

#include <algorithm>
#include <utility>

namespace spoor::peer {

std::vector<RollEntry> AbsenceWatch::look(std::span<const RollEntry> roll, base::SteadyTime now) {
  const auto step = last_look_ ? std::min(now - *last_look_, step_max_) : std::chrono::nanoseconds(0);
  last_look_ = now;
  std::map<std::string, Absence> absences;
  std::vector<RollEntry> due;
  for (const RollEntry& entry : roll) {
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
