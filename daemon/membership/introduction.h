// Whether this daemon may acknowledge marks (docs/cluster.md, "Joining").
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "daemon/process/timer.h"
#include "tracker/cycles/peer_book.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {

// No instance acknowledges a mark before another member has recorded it durably, and all that respond have:
// so every scan that reads one of them expects it, even if it is gone by then. A node without other members
// needs nobody. Nor does one that was recorded in an earlier run, if no member responds now; otherwise it is
// recorded anew, since others may have evicted it. So it is with each hour that it runs: an instance that
// reaches any member is not gone for long.
//
// Lives on the thread of `context`; all references must outlive it.
class Introduction {
 public:
  Introduction(boost::asio::io_context& context, boost::asio::thread_pool& pool,
               tracker::Persistence& persistence, std::string node, const base::Clock& clock, Timers& timers);

  const tracker::PeerId& id() const { return id_; }
  // As what this node introduces itself; nothing once it retires. Thread-safe.
  std::optional<tracker::Joined> self() const;

  // Thread-safe. To be read after the mark is made.
  bool is_open() const { return is_open_ && is_member(); }

  // Records a member on this node. It is durable once the journal is, up to the position that is returned.
  tracker::JournalPosition record(const tracker::Joined& member);

  // For a node without peers: it need not wait for the first round.
  void open_alone();
  // There are peers now: unless one has recorded this instance, marks wait for the next round.
  void close_alone();

  // Notes durably that no mark is acknowledged any more, that another member has all that were, or neither.
  boost::asio::awaitable<base::Result<>> note(tracker::Membership membership);

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
  bool is_member() const { return !tracker::is_leaving(persistence_.membership()); }
  boost::asio::awaitable<void> end_waiting();

  boost::asio::io_context& context_;
  boost::asio::thread_pool& pool_;
  tracker::Persistence& persistence_;
  const tracker::PeerId id_;
  const base::Clock& clock_;
  const base::SteadyTime started_at_;
  std::atomic<bool> is_open_ = false;
  boost::asio::steady_timer opened_;  // never expires; cancelled to wake those that wait
  const std::unique_ptr<Timer> patience_;
  bool is_waited_for_ = false;
  bool is_logged_ = false;  // that marks are not acknowledged
};

}  // namespace spoor::daemon
