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
  explicit Reachability(std::size_t hosts);

  void set(std::size_t from, std::size_t to, Reach reach);

  // The view of one host at one time.
  struct View {
    std::vector<Reach> reach;
    std::vector<std::uint64_t> changes;
  };
  View from(std::size_t host) const;

  // The reachability during the whole time between two views of a host; `changing` if it was not constant.
  static Reach throughout(const View& before, const View& after, std::size_t to);

 private:
  mutable std::mutex mutex_;
  std::vector<View> views_;
};

}  // namespace spoor::hosts
