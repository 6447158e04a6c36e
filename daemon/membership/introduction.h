// Whether this daemon may acknowledge marks (docs/cluster.md, "Joining").
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
// Nor does one acknowledge a mark that was not *known* for `known_for`: no source lists it, and not all that
// the DNS lists have recorded it. Scans may expect it no longer. That some have recorded it does not count:
// they may be cut off with it. Once it is known again, it is recorded anew first, since it may be gone for
// scans. `known_for` is half of `peers.forget_after`, and a period of records half of that (or an hour): a
// scan that has read the last record expects the instance for longer than it acknowledges marks.
//
// Lives on the thread of `context`; all references must outlive it.
class Introduction {
 public:
  Introduction(boost::asio::io_context& context, boost::asio::thread_pool& pool,
               tracker::Persistence& persistence, std::string node, std::chrono::nanoseconds known_for,
               const base::Clock& clock, Timers& timers);

  const tracker::PeerId& id() const { return id_; }
  // As what this node introduces itself; nothing once it retires. Thread-safe.
  std::optional<tracker::Joined> self() const;

  // Thread-safe. To be read after the mark is made.
  bool is_open() const { return is_open_ && is_member() && is_known(); }

  // Records a member on this node. It is durable once the journal is, up to the position that is returned.
  tracker::JournalPosition record(const tracker::Joined& member);

  // For a node without peers: it need not wait for the first round.
  void open_alone();
  // There are peers now: unless one has recorded this instance, marks wait for the next round.
  void close_alone();

  // Notes durably that no mark is acknowledged any more, that another member has all that were, or neither.
  boost::asio::awaitable<base::Result<>> note(tracker::Membership membership);

  // A round of requests.
  struct Round {
    tracker::KnownAt began_at;
    std::vector<tracker::PeerId> met = {};  // the members that have recorded this node
    bool are_all = false;                   // there are no others, as a source says
    bool is_alone = false;                  // known to be the only member
    bool is_listed = false;                 // a source has its address
  };
  boost::asio::awaitable<void> take(Round round);
  // Before each round, on which self() depends.
  void begin_round();

  // A source has confirmed at that time that it lists this node.
  void know(const tracker::KnownAt& at);

  // Why a source may not list this node; empty: it does. Becomes a part of error().
  void set_source_error(std::string error) { source_error_ = std::move(error); }

  tracker::KnownAt now() const { return {clock_.steady_now(), clock_.wall_now()}; }

  // Takes effect at once.
  void set_known_for(std::chrono::nanoseconds known_for) { known_for_ = known_for; }

  // Returns at once if marks may be acknowledged, and otherwise once they may be, or after some seconds: the
  // members may be starting at the same time. Returns why they may not; empty: they may.
  boost::asio::awaitable<std::string> wait();

  // Why marks are not acknowledged; empty: they are.
  std::string error() const;
  // The same, but empty while it waits to be known: a DNS that lists only nodes that are ready would never
  // list it.
  std::string health_error() const { return is_member() ? std::string() : error(); }

  // Ends the waits.
  void stop();

 private:
  bool is_member() const { return !tracker::is_leaving(persistence_.membership()); }
  std::chrono::nanoseconds since(const tracker::KnownAt& at) const;
  bool is_known() const;
  bool is_paused() const;
  void open_if_may(bool is_alone);
  base::Result<> note(bool is_met);
  boost::asio::awaitable<void> end_waiting();

  boost::asio::io_context& context_;
  boost::asio::thread_pool& pool_;
  tracker::Persistence& persistence_;
  const tracker::PeerId id_;
  const base::Clock& clock_;
  std::atomic<std::chrono::nanoseconds> known_for_;
  std::atomic<base::SteadyTime> known_steady_;
  std::atomic<base::WallTime> known_wall_;
  std::atomic<std::uint64_t> periods_ = 0;
  std::optional<base::SteadyTime> period_began_at_;
  bool has_asked_ = false;  // a round has ended
  tracker::KnownAt recorded_at_;
  bool must_be_recorded_;       // in a round that begins since: it was not known
  bool is_round_anew_ = false;  // the last round that has begun has done so since
  std::atomic<bool> is_open_ = false;
  boost::asio::steady_timer opened_;  // never expires; cancelled to wake those that wait
  const std::unique_ptr<Timer> patience_;
  std::string source_error_;
  bool is_waited_for_ = false;
  bool is_logged_ = false;  // that marks are not acknowledged
};

}  // namespace spoor::daemon
