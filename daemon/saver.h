#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "daemon/timer.h"
#include "tracker/persistence.h"

namespace spoor::daemon {

// Saves the tracker's state: when asked, and every interval if something changed or some drive missed the
// last save. A save that no drive
// took, or that did not mend a journal that had failed, is tried again, with growing pauses.
//
// Lives on the thread of `context`; the writing itself is done on `pool`, and marking goes on
// meanwhile. One save at a time. All references must outlive it.
class Saver {
 public:
  Saver(boost::asio::io_context& context, boost::asio::thread_pool& pool, tracker::Persistence& persistence,
        const base::Clock& clock, Timers& timers, std::chrono::milliseconds interval);

  // Saves what is known when it begins, after a save that is under way.
  boost::asio::awaitable<tracker::SavedSnapshot> save();

  // Begins a save if something changed; does not wait for it.
  void save_soon();

  // The journal has grown long: begins a save, unless one is under way or drives fail anyway.
  void free_journal();

  // The journal can't be written: begins to try again.
  void mend_journal();

  // Takes the disk at this path for the drive from now on, and saves to it.
  boost::asio::awaitable<base::Result<>> accept_drive(std::filesystem::path drive);

  // How each drive is now. One that the last save refused and that is back is ok, and a save begins; one that
  // could not be written is as the last save found it. A disk that hangs delays this by check_max at most.
  boost::asio::awaitable<std::vector<tracker::DriveState>> check_drives();
  static constexpr std::chrono::seconds check_max{5};

  // Saves every interval, until stop().
  void start();
  void stop();

  // The last attempt, durable or not, and the last that was durable; nothing before the first.
  const std::optional<tracker::SavedSnapshot>& last() const { return last_; }
  const std::optional<tracker::SavedSnapshot>& last_durable() const { return last_durable_; }

  // Attempts that no drive took, since the start.
  std::uint64_t failures() const { return failures_total_; }

  // Why what is marked may not get to the drives at present; empty where all is well.
  std::vector<std::string> trouble() const;

  // For the first save, when nothing else runs yet: on the calling thread.
  void save_here();

 private:
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<void> wait_for_turn();
  boost::asio::awaitable<void> run_check();
  std::vector<tracker::DriveState> hanging_drives() const;
  const tracker::SavedSnapshot& take(tracker::SavedSnapshot saved, tracker::JournalPosition position);
  void end_turn();
  std::chrono::milliseconds pause() const;
  bool some_drive_missed_it() const;

  boost::asio::io_context& context_;
  boost::asio::thread_pool& pool_;
  tracker::Persistence& persistence_;
  const base::Clock& clock_;
  const std::chrono::milliseconds interval_;

  std::unique_ptr<Timer> timer_;        // ends the pause before the next save
  boost::asio::steady_timer finished_;  // cancelled whenever a save has finished
  bool running_ = false;
  base::SteadyTime started_at_{};
  bool stopped_ = false;
  bool soon_ = false;
  unsigned failures_ = 0;  // in a row
  std::uint64_t failures_total_ = 0;
  std::optional<tracker::JournalPosition> saved_position_;
  bool is_checking_ = false;
  std::atomic<std::size_t> checking_ = 0;  // the number of the drive
  boost::asio::steady_timer checked_;      // cancelled when the check has finished
  std::vector<tracker::DriveState> found_;
  std::optional<tracker::SavedSnapshot> last_;
  std::optional<tracker::SavedSnapshot> last_durable_;
};

}  // namespace spoor::daemon
