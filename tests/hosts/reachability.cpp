#include "tests/hosts/reachability.h"

namespace spoor::hosts {

Reachability::Reachability(std::size_t hosts)
    : views_(hosts, View{std::vector<Reach>(hosts, Reach::changing), std::vector<std::uint64_t>(hosts)}) {}

void Reachability::set(std::size_t from, std::size_t to, Reach reach) {
  const std::scoped_lock lock(mutex_);
  views_.at(from).reach.at(to) = reach;
  ++views_.at(from).changes.at(to);
}

Reachability::View Reachability::from(std::size_t host) const {
  const std::scoped_lock lock(mutex_);
  return views_.at(host);
}

Reach Reachability::throughout(const View& before, const View& after, std::size_t to) {
  return before.changes.at(to) == after.changes.at(to) ? after.reach.at(to) : Reach::changing;
}

}  // namespace spoor::hosts
