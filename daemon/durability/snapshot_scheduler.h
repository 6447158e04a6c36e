#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "daemon/process/timer.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {

// Saves snapshots of the tracker's state: on request, and every interval if something changed or a drive
// missed the last save. Retries with growing pauses if no drive could be written, or if a failed journal
// still cannot be written.
//
// Not thread-safe: used on the thread of `context`; snapshots are written on `pool` while marking continues.
// One save at a time. All references must outlive it.
class SnapshotScheduler {
 public:
  SnapshotScheduler(boost::asio::io_context& context, boost::asio::thread_pool& pool,
                    tracker::Persistence& persistence, const base::Clock& clock, Timers& timers,
                    std::chrono::milliseconds interval);

  // Waits for the current save, if any, then saves the state at that time.
  boost::asio::awaitable<tracker::SavedSnapshot> save();

  // Requests a save if something changed; does not wait for it.
  void save_soon();

  // Requests a save because the journal is long, unless a save is running or the last one failed.
  void free_journal();

  // Starts to retry because the journal can't be written.
  void retry_journal();

  // Accepts the disk that is now at this path as the drive, and saves to it.
  boost::asio::awaitable<base::Result<>> accept_drive(std::filesystem::path drive);

  // Returns the current state of each drive. A drive that the last save refused and that is back is ok, and a
  // save is requested; a drive that could not be written keeps the state that the last save found. A disk
  // that hangs delays this by at most check_max.
  boost::asio::awaitable<std::vector<tracker::DriveState>> check_drives();
  static constexpr std::chrono::seconds check_max{5};

  // Saves every interval, until stop().
  void start();
  void stop();

  // The last attempt, durable or not, and the last durable one; std::nullopt before the first.
  const std::optional<tracker::SavedSnapshot>& last() const { return last_; }
  const std::optional<tracker::SavedSnapshot>& last_durable() const { return last_durable_; }

  // Attempts since the start in which no drive could be written.
  std::uint64_t failures() const { return failures_total_; }

  // Why marks may not reach the drives now; empty if they do.
  std::vector<std::string> health_error() const;

  // Saves on the calling thread. For the first save, before `context` runs.
  void save_here();

 private:
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<void> wait_until_idle();
  boost::asio::awaitable<void> run_check();
  boost::asio::awaitable<void> bound_check();
  std::vector<tracker::DriveState> hanging_drives() const;
  const tracker::SavedSnapshot& take(tracker::SavedSnapshot saved, tracker::JournalPosition position);
  void finish_save();
  std::chrono::milliseconds pause() const;
  bool some_drive_missed_it() const;

  boost::asio::io_context& context_;
  boost::asio::thread_pool& pool_;
  tracker::Persistence& persistence_;
  const base::Clock& clock_;
  const std::chrono::milliseconds interval_;

  std::unique_ptr<Timer> timer_;        // ends the pause before the next save
  boost::asio::steady_timer finished_;  // cancelled when a save has finished
  bool running_ = false;
  base::SteadyTime started_at_{};
  bool stopped_ = false;
  bool soon_ = false;
  unsigned failures_ = 0;  // in a row
  std::uint64_t failures_total_ = 0;
  std::optional<tracker::JournalPosition> saved_position_;
  bool is_checking_ = false;
  std::atomic<std::size_t> checking_ = 0;  // the index of the drive being read
  std::unique_ptr<Timer> check_timer_;     // bounds the check
  std::uint64_t checks_ = 0;               // begun so far
  bool is_check_late_ = false;             // the current check has taken check_max
  boost::asio::steady_timer checked_;      // cancelled when the check has finished, or is late
  std::vector<tracker::DriveState> found_;
  std::optional<tracker::SavedSnapshot> last_;
  std::optional<tracker::SavedSnapshot> last_durable_;
};

}  // namespace spoor::daemon
