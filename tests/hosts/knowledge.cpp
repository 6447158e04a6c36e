#include "tests/hosts/knowledge.h"

#include <algorithm>

namespace spoor::hosts {

Knowledge::Knowledge(std::size_t hosts)
    : scanners_(hosts, Scanner{false, std::vector<Known>(hosts), std::vector<bool>(hosts)}),
      memories_(hosts, 1) {}

void Knowledge::lose(std::size_t host) {
  const std::scoped_lock lock(mutex_);
  ++memories_.at(host);
  Scanner& scanner = scanners_.at(host);
  scanner.has_scanned = false;
  scanner.known.assign(memories_.size(), Known{});
}

void Knowledge::acknowledged(std::size_t changed, std::size_t by) {
  const std::scoped_lock lock(mutex_);
  scanners_.at(changed).unread.at(by) = true;
}

Knowledge::Reading Knowledge::begin(std::size_t scanner) {
  const std::scoped_lock lock(mutex_);
  return {scanner, memories_};
}

bool Knowledge::may_meet_former(std::size_t scanner, std::size_t peer) const {
  const std::scoped_lock lock(mutex_);
  return has_lost(scanner) && has_lost(peer);
}

Knowledge::Expected Knowledge::expect(const Reading& reading, const std::vector<bool>& answered) const {
  const std::scoped_lock lock(mutex_);
  const Scanner& scanner = scanners_.at(reading.scanner);
  Expected expected;
  expected.first = !scanner.has_scanned;
  expected.is_full = expected.first;
  expected.has_all_marks = true;
  for (std::size_t peer = 0; peer < memories_.size(); ++peer) {
    const Known& known = scanner.known.at(peer);
    const bool may_meet = has_lost(reading.scanner) && has_lost(peer);
    expected.may_be_a_gap.push_back(may_meet || known.memory_min < memories_.at(peer));
    if (answered.at(peer) && known.memory_max < reading.memories.at(peer)) expected.is_full = true;
    if (!answered.at(peer) && scanner.unread.at(peer)) expected.has_all_marks = false;
  }
  return expected;
}

void Knowledge::finish(const Reading& reading, const std::vector<bool>& answered, bool full) {
  const std::scoped_lock lock(mutex_);
  Scanner& scanner = scanners_.at(reading.scanner);
  scanner.has_scanned = true;
  for (std::size_t peer = 0; peer < memories_.size(); ++peer) {
    Known& known = scanner.known.at(peer);
    if (answered.at(peer)) known = {reading.memories.at(peer), memories_.at(peer)};
    // What the peer had marked by then has been walked; what it marks later is read from its birth on.
    if (full) known.memory_max = std::max(known.memory_max, reading.memories.at(peer));
    if (answered.at(peer) || full) scanner.unread.at(peer) = false;
  }
}

}  // namespace spoor::hosts
