#include "tests/simulation/oracle.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace spoor::simulation {
namespace {

std::set<std::string> heard_by(const Scan& scan) {
  std::set<std::string> names;
  for (const peer::PeerOutcome& peer : scan.gathered().peers) {
    if (peer.ok) names.insert(peer.name);
  }
  return names;
}

std::string details(const Scan& scan) {
  std::string all;
  for (const auto& peer : scan.gathered().peers) {
    all += fmt::format("\n  {} at {}: {}", peer.name, peer.url, peer.ok ? "read" : peer.error);
  }
  for (const auto& [id, peer] : scan.gathered().book) {
    all += fmt::format("\n  known: {} {:.4} cycle {} home {} standing {} run {}", id.name,
                       id.instance.to_string(), peer.cycle.value, peer.home, static_cast<int>(peer.standing),
                       peer.run);
  }
  return all;
}

// The text between the first quotes.
std::string name_in(const std::string& gap) {
  const auto from = gap.find('\'');
  const auto to = gap.find('\'', from + 1);
  return from == std::string::npos || to == std::string::npos ? gap : gap.substr(from + 1, to - from - 1);
}

}  // namespace

std::optional<std::string> Oracle::check(const Scan& scan, const Database& database) {
  ++scans_;
  if (!scan.gathered().gaps.empty()) ++full_scans_;
  if (!scan.gathered().complete()) ++partial_scans_;
  count_returns(scan.gathered().book);
  auto broken = check_promises(scan, database);
  if (!broken) broken = check_gaps(scan);
  remember(scan);
  return broken;
}

std::optional<std::string> Oracle::check_promises(const Scan& scan, const Database& database) {
  const auto heard = heard_by(scan);
  const bool complete = scan.gathered().complete();
  std::optional<std::string> broken;
  std::erase_if(promised_, [&](const Promise& promise) {
    if (database.seen[promise.directory].value_or(0) >= promise.version) return true;
    const bool was_before = promise.moment < scan.input().started_at;
    // A partial scan may have read a later memory of the node, and learn of this one from a peer that did not
    // respond.
    const auto answered = scan.answered().find(promise.through);
    const bool is_heard = heard.contains(promise.through) && answered != scan.answered().end() &&
                          answered->second == promise.memory;
    if (was_before && (complete || is_heard) && !broken) {
      broken = fmt::format(
          "a change of '{}', acknowledged by {} in action {}, is missed by a {} scan begun in action {}{}",
          Tree::path(promise.directory), promise.through, promise.moment, complete ? "complete" : "partial",
          scan.input().started_at, details(scan));
    }
    return false;
  });
  return broken;
}

std::optional<std::string> Oracle::check_gaps(const Scan& scan) const {
  for (const std::string& gap : scan.gathered().gaps) {
    if (!is_due(gap, scan)) {
      return fmt::format("a full walk without a loss of knowledge: {}{}", gap, details(scan));
    }
  }
  return std::nullopt;
}

bool Oracle::is_due(const std::string& gap, const Scan& scan) const {
  const std::string name = name_in(gap);
  // A hostile peer may cause walks, but only by what it reports about itself.
  if (!scan.input().hostile.empty() && name == scan.input().hostile) return true;
  const auto says = [&](std::string_view words) { return gap.find(words) != std::string::npos; };
  // A loss ends one instance and begins another: each may cost a walk, at different times.
  const auto count = [&](const auto& counts) {
    const auto found = counts.find(name);
    return found == counts.end() ? std::uint64_t{0} : found->second;
  };
  if (says("no longer keeps")) {
    const auto answered = scan.answered().find(name);
    const Memory memory = answered == scan.answered().end() ? Memory() : answered->second;
    // One that retired, and began anew before this scanner has read the member that adopted its marks.
    return count(walks_) < 2 * memory.losses + memory.retirements + count(returns_);
  }
  if (says("retired")) return count(walked_for_) < count(may_walk_for_);
  if (says("is no longer among the peers"))
    return unheard_.contains(name) || !scan.input().names.contains(name);
  return false;
}

void Oracle::count_returns(const tracker::PeerBook& book) {
  for (const auto& [id, peer] : std::exchange(book_, book)) {
    if (peer.standing == tracker::Standing::gone && book.contains(id) && book.at(id).run > peer.run)
      ++returns_[id.name];
  }
}

void Oracle::remember(const Scan& scan) {
  std::set<std::string> lost;
  for (const std::string& gap : scan.gathered().gaps) {
    if (gap.find("no longer keeps") != std::string::npos) lost.insert(name_in(gap));
    if (gap.find("retired") != std::string::npos) ++walked_for_[name_in(gap)];
  }
  for (const std::string& name : lost) ++walks_[name];
  for (const peer::PeerOutcome& peer : scan.gathered().peers) {
    if (!peer.ok) unheard_.insert(peer.url);
  }
}

}  // namespace spoor::simulation
