#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "daemon/durability/snapshot_scheduler.h"
#include "daemon/process/timer.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {

// Group commit: responses wait until the marks that they acknowledge are in the journal. Marks that arrive
// during one write are written together by the next.
//
// Not thread-safe: used on the thread of `context`; the writes are done on `pool`. All references must
// outlive it.
class GroupCommit {
 public:
  GroupCommit(boost::asio::io_context& context, boost::asio::thread_pool& pool,
              tracker::Persistence& persistence, SnapshotScheduler& snapshot_scheduler,
              const base::Clock& clock, Timers& timers);

  // Waits until everything before `position` is as durable as tracker.durability promises. Fails with
  // Errc::not_durable if the journal can't be written, at once if that is known, or if a write takes longer
  // than 10 seconds.
  boost::asio::awaitable<base::Result<>> wait(tracker::JournalPosition position);

  // Why marks cannot be made durable now; empty if they can.
  std::string health_error() const;

 private:
  boost::asio::awaitable<void> commit();
  boost::asio::awaitable<void> watch();

  boost::asio::io_context& context_;
  boost::asio::thread_pool& pool_;
  tracker::Persistence& persistence_;
  SnapshotScheduler& snapshot_scheduler_;
  const base::Clock& clock_;

  boost::asio::steady_timer finished_;  // cancelled when a write has finished or takes too long
  std::unique_ptr<Timer> watchdog_;
  bool running_ = false;
  base::SteadyTime started_at_{};
};

}  // namespace spoor::daemon
