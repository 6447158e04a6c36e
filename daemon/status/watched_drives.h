#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "daemon/process/timer.h"
#include "peer/http/watch_report.h"

namespace spoor::daemon {

// A drive in `watch.drives`.
struct WatchState {
  std::string drive;
  std::string error;                               // why it is not watched; empty: it is
  base::WallTime failing_since = {};               // if it is not
  std::optional<base::WallTime> reported_at = {};  // the last report; none since spoord started
  peer::WatchedDrive last = {};                    // that report
};

// What spoor-watch reports of the drives of this node, and whether it still does. Synchronises scans with it:
// see peer/http/watch_report.h.
//
// Runs on the thread of the io_context of `timers`. All references must outlive it.
class WatchedDrives {
 public:
  // Makes a file of this name in `.spoor` of the drive, and removes it. Calls `done` later on the thread of
  // the io_context, for a drive that hangs perhaps never.
  using MakeCookie = std::function<void(const std::filesystem::path& drive, const std::string& name,
                                        std::function<void(const base::Result<>&)> done)>;

  // spoor-watch reports each drive every 3 s.
  static constexpr std::chrono::seconds silence_max{15};
  // Cookies are made again while a scan waits: spoor-watch may have begun to watch just now.
  static constexpr std::chrono::seconds cookie_interval{1};

  // `drives` are all of this node, `watched` those that are to be watched.
  WatchedDrives(Timers& timers, const base::Clock& clock, std::vector<std::filesystem::path> drives,
                std::vector<std::filesystem::path> watched, MakeCookie make_cookie);

  void set_watched(std::vector<std::filesystem::path> watched) { watched_ = std::move(watched); }

  // Fails with std::errc::invalid_argument for a drive that this node does not have.
  base::Result<> report(peer::WatchedDrive report);

  // Returns once spoor-watch has marked all that changed on these drives before, or reports that it does not
  // watch them, or the time has passed: a walk of a drive costs more than to wait for a disk that is slow,
  // also if there was no report for some time. One result for each drive, in their order.
  boost::asio::awaitable<std::vector<peer::DriveSync>> synchronise(peer::SyncRequest request);

  // Ends what synchronise() waits for.
  void stop();

  // Of the drives that are to be watched.
  std::vector<WatchState> states() const;
  std::vector<std::string> health_errors() const;

 private:
  struct Report {
    peer::WatchedDrive drive;
    base::SteadyTime at;
    base::WallTime wall_at;
    std::optional<base::WallTime> failing_since;
  };
  struct Waiting {
    peer::DriveSync result;
    std::string cookie;
    bool is_over = false;
    bool is_making = false;  // the cookie
  };
  struct Round {
    std::unique_ptr<Timer> timer;
    std::vector<Waiting> drives;

    bool is_over() const;
    void end(Waiting& drive, std::string error);
  };

  bool has_drive(const std::filesystem::path& drive) const;
  std::string why_not_watched(const std::string& drive) const;
  void make_cookies(const std::shared_ptr<Round>& round);
  void confirm(Round& round, const peer::WatchedDrive& report);

  Timers& timers_;
  const base::Clock& clock_;
  const std::vector<std::filesystem::path> drives_;
  std::vector<std::filesystem::path> watched_;
  const MakeCookie make_cookie_;
  const base::SteadyTime started_at_;
  const base::WallTime started_wall_at_;
  std::map<std::string, Report> reports_;  // by drive
  std::list<std::shared_ptr<Round>> rounds_;
  bool is_stopped_ = false;
};

}  // namespace spoor::daemon
