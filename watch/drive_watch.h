#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "peer/http/watch_report.h"
#include "watch/event_marks.h"
#include "watch/event_source.h"

namespace spoor::watch {

// The daemon of this node.
class MarkSink {
 public:
  virtual ~MarkSink() = default;

  // Returns once the daemon has acknowledged all of them, which are of this drive. After a failure, some may
  // be marked. Fails with std::errc::invalid_argument if the daemon refuses a path for good.
  virtual base::Result<> send(const std::filesystem::path& drive, const EventMarks& marks) = 0;

  // Returns once the daemon knows it.
  virtual base::Result<> report(const peer::WatchedDrive& drive) = 0;
};

// Watches one drive: marks what changes, and reports to the daemon that it does.
//
// Events come in order, and each is marked after it was read, in the cycle that is open then. So once the
// cookie of a scan is reported, everything that changed before the scan is marked. Wherever changes may have
// been missed is a gap: the report has another id, which no scan knows, and the next scan walks the drive. A
// scan whose cookie is not reported walks it as well: no gap needs to be stored.
//
// Not thread-safe. Takes the clock, the events and the daemon as parameters; does no I/O of its own.
class DriveWatch {
 public:
  struct Options {
    std::filesystem::path drive;
    // How long marks wait for more of them, while no scan waits.
    std::chrono::milliseconds batch{0};
    // While the daemon accepts no marks. What exceeds it is a gap.
    std::size_t pending_bytes_max = std::size_t{8} << 20U;
    // Of unread events. What exceeds it is a gap.
    std::uint64_t queue_bytes_max = std::uint64_t{256} << 20U;
  };

  // All references must outlive it. `kept`: the source of an earlier process that missed nothing; null: there
  // is none.
  DriveWatch(Options options, OpenSource open, MarkSink& sink, const base::Clock& clock,
             std::unique_ptr<EventSource> kept);

  // Reads the events that wait, marks them, retries what failed before, and reports. Never throws away an
  // event without a gap.
  void step();

  // How long a caller may wait for events until the next step is due.
  std::chrono::nanoseconds due_in() const;

  // To be waited for; -1: there is nothing to wait for.
  int descriptor() const { return source_ ? source_->descriptor() : -1; }

  // Whether every event that was read is marked.
  bool is_settled() const { return pending_.empty(); }

  // Whether the last step read changes: more of them may come soon, and cost less together.
  bool is_busy() const { return is_busy_; }

  // What is reported to the daemon.
  peer::WatchedDrive state() const;

 private:
  bool open();
  void read();
  base::Result<bool> read_batch();
  void send();
  void report();
  void lose(const std::string& why);
  void fail_to_send(const base::Error& why);
  void note_gap(const std::string& reason);
  void drop_pending();

  const Options options_;
  const OpenSource open_source_;
  MarkSink& sink_;
  const base::Clock& clock_;

  std::unique_ptr<EventSource> source_;  // null: the drive is not watched at present
  EventMarks pending_;
  peer::DriveGap gap_;
  bool is_gap_known_ = false;  // a scan may know it: the next gap needs another id
  std::string cookie_;         // to be reported; empty: none
  std::string lost_reason_ = "changes before spoor-watch started were not watched";
  std::string open_error_;
  std::string send_error_;
  base::SteadyTime open_at_{};
  base::SteadyTime send_at_{};
  base::SteadyTime report_at_{};
  bool has_failed_to_report_ = false;
  std::chrono::nanoseconds pause_{0};
  std::optional<base::SteadyTime> pending_since_;
  peer::WatchedDrive reported_;
  peer::WatchFigures figures_;
  bool is_busy_ = false;
};

}  // namespace spoor::watch
