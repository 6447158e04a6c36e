// Which spoord is reachable from which host, given the current faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace spoor::hosts {

enum class Reach { yes, no, changing };

// Thread-safe.
class Reachability {
 public:
  // The view of one host at one time.
  struct View {
    std::vector<Reach> reach;
    std::vector<std::uint64_t> changes;
  };

  explicit Reachability(std::size_t hosts)
      : views_(hosts, View{std::vector<Reach>(hosts, Reach::changing), std::vector<std::uint64_t>(hosts)}) {}

  void set(std::size_t from, std::size_t to, Reach reach) {
    const std::scoped_lock lock(mutex_);
    views_.at(from).reach.at(to) = reach;
    ++views_.at(from).changes.at(to);
  }

  View from(std::size_t host) const {
    const std::scoped_lock lock(mutex_);
    return views_.at(host);
  }

  // The reachability during the whole time between two views of a host; `changing` if it was not constant.
  static Reach throughout(const View& before, const View& after, std::size_t to) {
    return before.changes.at(to) == after.changes.at(to) ? after.reach.at(to) : Reach::changing;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<View> views_;
};

}  // namespace spoor::hosts
