// Whether this daemon may acknowledge marks (docs/cluster.md, "Joining").
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "daemon/process/timer.h"
#include "tracker/cycles/peer_book.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {

// No instance acknowledges a mark before another member has recorded it durably, and all that respond have:
// so every scan that reads one of them expects it, even if it is gone by then. A node without other members
// needs nobody. Nor does one that was recorded in an earlier run, if no member responds now; otherwise it is
// recorded anew, since others may have evicted it.
//
// Lives on the thread of `context`; all references must outlive it.
class Introduction {
 public:
  Introduction(boost::asio::io_context& context, boost::asio::thread_pool& pool,
               tracker::Persistence& persistence, tracker::Joined self, Timers& timers);

  const tracker::Joined& self() const { return self_; }

  // Thread-safe.
  bool is_open() const { return is_open_; }

  // Records a member on this node. It is durable once the journal is, up to the position that is returned.
  tracker::JournalPosition record(const tracker::Joined& member);

  // For a node without peers: it need not wait for the first round.
  void open_alone();

  // After each round of requests: the members that have recorded this node, and whether it is known to be the
  // only member.
  boost::asio::awaitable<void> take(std::vector<tracker::PeerId> met, bool is_alone);

  // Returns at once if marks may be acknowledged, and otherwise once they may be, or after some seconds: the
  // members may be starting at the same time. Returns why they may not; empty: they may.
  boost::asio::awaitable<std::string> wait();

  // Why marks are not acknowledged; empty: they are.
  std::string error() const;

  // Ends the waits.
  void stop();

 private:
  base::Result<> open();
  boost::asio::awaitable<void> end_waiting();

  boost::asio::io_context& context_;
  boost::asio::thread_pool& pool_;
  tracker::Persistence& persistence_;
  const tracker::Joined self_;
  std::atomic<bool> is_open_ = false;
  boost::asio::steady_timer opened_;  // never expires; cancelled to wake those that wait
  const std::unique_ptr<Timer> patience_;
  bool is_waited_for_ = false;
};

}  // namespace spoor::daemon
