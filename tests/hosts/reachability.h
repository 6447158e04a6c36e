// Which spoord can be asked from which host, as the faults have left it.
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

  // One host's view at one time.
  struct View {
    std::vector<Reach> reach;
    std::vector<std::uint64_t> changes;
  };
  View from(std::size_t host) const;

  // How it was all the while between two views of a host's; `changing` where it was not the same.
  static Reach throughout(const View& before, const View& after, std::size_t to);

 private:
  mutable std::mutex mutex_;
  std::vector<View> views_;
};

}  // namespace spoor::hosts
