#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "daemon/saver.h"
#include "daemon/timer.h"
#include "tracker/persistence.h"

namespace spoor::daemon {

// Group commit: lets answers wait until what they rely on is in the journal. While one write is under
// way, all that comes meanwhile gathers for the next.
//
// Lives on the thread of `context`; the writing itself is done on `pool`. All references must outlive it.
class Committer {
 public:
  Committer(boost::asio::io_context& context, boost::asio::thread_pool& pool,
            tracker::Persistence& persistence, Saver& saver, const base::Clock& clock, Timers& timers);

  // Until everything before `position` is as durable as promised. Fails with Errc::not_durable where the
  // journal can't be written, at once if that is known, or does not answer for `write_max`.
  boost::asio::awaitable<base::Result<>> wait(tracker::JournalPosition position);

  // Why nothing can be made durable at present; empty where all is well.
  std::string trouble() const;

 private:
  boost::asio::awaitable<void> commit();
  boost::asio::awaitable<void> watch();

  boost::asio::io_context& context_;
  boost::asio::thread_pool& pool_;
  tracker::Persistence& persistence_;
  Saver& saver_;
  const base::Clock& clock_;

  boost::asio::steady_timer finished_;  // cancelled whenever a write has finished, or takes too long
  std::unique_ptr<Timer> watchdog_;
  bool running_ = false;
  base::SteadyTime started_at_{};
};

}  // namespace spoor::daemon
