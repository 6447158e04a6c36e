// What events are published to.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "publish/event.h"

namespace spoor::publish {

// A larger event that a server refuses as too large is given up. A server that refuses a smaller one takes
// none.
inline constexpr std::size_t small_event_bytes = std::size_t{1} << 10U;

// The totals of a directory after a scan.
struct DirectoryTotals {
  std::string path;  // "" is the root
  std::uint64_t files = 0;
  std::uint64_t dirs = 0;
  std::uint64_t bytes = 0;
  std::uint64_t allocated = 0;
  bool complete = true;
};

// Not thread-safe. Every call ends in bounded time.
class Sink {
 public:
  virtual ~Sink() = default;

  // Publishes as many of the events, in this order, as one request takes, and waits until the other end has
  // stored them. Returns how many: at least one. After an error, any of the events may be stored: the caller
  // publishes all of them again.
  virtual base::Result<std::size_t> publish(const Source& source, std::span<const Event> events) = 0;

  // Whether publish() takes all events, and waits for those of the calls before only. After an error, any of
  // those that no call has waited for may be stored.
  virtual bool defers() const { return false; }
  // Waits until the other end has stored all that was published. Called after publish().
  virtual base::Result<> settle() { return {}; }

  // Whether the last failure was that the other end has nothing of this source, and the events do not begin
  // with a reset.
  virtual bool needs_reset() const { return false; }

  // How long the other end has asked to wait since the last call; zero if it has not.
  virtual std::chrono::seconds take_retry_after() { return {}; }

  // Whether totals are stored, too. `are_all`: the other directories of the same depth do not exist.
  virtual bool takes_totals() const { return false; }
  virtual base::Result<> store_totals(const Source& /*source*/, const scanner::ScanRecord& /*scan*/,
                                      std::span<const DirectoryTotals> /*totals*/, bool /*are_all*/) {
    return {};
  }
};

}  // namespace spoor::publish
