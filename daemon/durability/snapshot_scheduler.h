#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "daemon/durability/drive_threads.h"
#include "daemon/process/timer.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {

// Saves snapshots of the tracker's state: on request, and every interval if something changed or a drive
// missed the last save. Retries with growing pauses if no drive could be written, or if a failed journal
// still cannot be written.
//
// Each drive is written on a thread of its own. A drive that hangs is reported as one that failed, and is
// left out of further saves until it responds.
//
// Not thread-safe: used on the thread of `context`; snapshots are written while marking continues. One save
// at a time. All references must outlive it. The destructor waits for drives that hang (see busy_drives()).
class SnapshotScheduler {
 public:
  SnapshotScheduler(boost::asio::io_context& context, boost::asio::thread_pool& pool,
                    tracker::Persistence& persistence, const base::Clock& clock, Timers& timers,
                    std::chrono::milliseconds interval);

  // Waits for the current save, if any, then saves the state at that time. Returns when every drive has
  // finished, or response_max after the first drive took the snapshot; or, if no drive takes it, after
  // save_max, unless no drive at all has responded by then: then there is no other to save to, and the save
  // waits until one responds.
  boost::asio::awaitable<tracker::SavedSnapshot> save();
  static constexpr std::chrono::seconds response_max{10};
  static constexpr std::chrono::minutes save_max{1};

  // Requests a save if something changed; does not wait for it.
  void save_soon();

  // Requests a save because the journal is long, unless a save is running or the last one failed.
  void free_journal();

  // Starts to retry because the journal can't be written.
  void retry_journal();

  // Accepts the disk that is now at this path as the drive, and saves to it. Fails after response_max if the
  // disk hangs.
  boost::asio::awaitable<base::Result<>> accept_drive(std::filesystem::path drive);

  // Writes the stamp of a scan to the drive. Fails after response_max if the disk hangs.
  boost::asio::awaitable<base::Result<>> stamp_drive(std::filesystem::path drive, tracker::DriveStamp stamp);

  // Returns the current state of each drive. A drive that the last save refused and that is back is ok, and a
  // save is requested; a drive that could not be written keeps the state that the last save found. A disk
  // that hangs is reported as such after check_max.
  boost::asio::awaitable<std::vector<tracker::DriveState>> check_drives();
  static constexpr std::chrono::seconds check_max{5};

  // Creates a file of this name in `.spoor` of the drive, and removes it. Calls `done` later, unless the
  // drive hangs.
  void touch(const std::filesystem::path& drive, const std::string& name,
             std::function<void(const base::Result<>&)> done);

  // Saves every interval, until stop(). After it a save ends after save_max at the latest.
  void start();
  void stop();

  // After stop(), when no mark is made any more: saves, and records a clean stop, as
  // Persistence::record_stop() does.
  boost::asio::awaitable<base::Result<tracker::SavedSnapshot>> save_last();

  // The number of drives at work now. While `context` has no work, these are the drives that hang.
  std::size_t busy_drives() const { return threads_.busy(); }

  // The last attempt, durable or not, and the last durable one; std::nullopt before the first.
  const std::optional<tracker::SavedSnapshot>& last() const { return last_; }
  const std::optional<tracker::SavedSnapshot>& last_durable() const { return last_durable_; }

  // Attempts since the start in which no drive could be written.
  std::uint64_t failures() const { return failures_total_; }

  // Why marks may not reach the drives now; empty if they do.
  std::vector<std::string> health_error() const;

 private:
  // The drives of one save or check.
  struct Round {
    std::vector<std::optional<tracker::DriveState>> states;  // by drive; none: it has not finished
    std::size_t running = 0;
    bool is_over = false;  // it waits for no drive any more
  };

  struct SaveRound : Round {
    base::SteadyTime begun_at{};
    bool is_some_finished = false;
    std::optional<base::SteadyTime> first_taken_at;
  };

  boost::asio::awaitable<void> run();
  boost::asio::awaitable<void> wait_until_idle();
  boost::asio::awaitable<tracker::SavedSnapshot> save_to_drives(
      std::shared_ptr<const tracker::PreparedSnapshot> snapshot);
  void finish_drive(SaveRound& round, std::size_t drive, tracker::DriveState saved);
  std::optional<std::chrono::milliseconds> wait_left(const SaveRound& round) const;
  std::chrono::milliseconds until(base::SteadyTime time) const;
  tracker::DriveState hanging_state(std::size_t drive, std::chrono::seconds time) const;
  boost::asio::awaitable<base::Result<>> run_on_drive(std::size_t drive, std::function<base::Result<>()> job,
                                                      std::function<void(const base::Result<>&)> ended_late);
  void finish_late_acceptance(std::size_t drive, const base::Result<>& accepted);
  std::shared_ptr<Round> begin_check();
  void end_check();
  boost::asio::awaitable<void> bound_check(std::shared_ptr<const Round> round);
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
  std::unique_ptr<Timer> drive_timer_;  // bounds the wait for the drives, in save() and accept_drive()
  boost::asio::steady_timer finished_;  // cancelled when a save has finished
  bool running_ = false;
  base::SteadyTime started_at_{};
  bool stopped_ = false;
  bool soon_ = false;
  unsigned failures_ = 0;  // in a row
  std::uint64_t failures_total_ = 0;
  std::optional<tracker::JournalPosition> saved_position_;
  std::shared_ptr<Round> check_;        // the current one; null if there is none
  std::unique_ptr<Timer> check_timer_;  // bounds it
  boost::asio::steady_timer checked_;   // cancelled when it is over
  std::optional<tracker::SavedSnapshot> last_;
  std::optional<tracker::SavedSnapshot> last_durable_;
  DriveThreads threads_;
};

}  // namespace spoor::daemon
