#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "tracker/storage/watch_record.h"
#include "watch/event_marks.h"
#include "watch/event_source.h"

namespace spoor::watch {

// Where marks go.
class MarkSink {
 public:
  virtual ~MarkSink() = default;

  // Returns once the daemon has acknowledged all of them. After a failure, some may be marked. Fails
  // with std::errc::invalid_argument if the daemon refuses a path for good, with permission_denied if it
  // refuses all requests for another reason than that it is busy.
  virtual base::Result<> send(const EventMarks& marks) = 0;
};

// Where gaps are stored.
class GapSink {
 public:
  virtual ~GapSink() = default;

  // Stores a gap of the drive, and returns its id. Durable on success.
  virtual base::Result<std::string> add_gap(const std::filesystem::path& drive,
                                            const std::string& reason) = 0;
};

// Watches one drive: marks what changes, and stores a gap wherever changes may have been missed.
//
// A scan that begins after a change was acknowledged reads its mark. One that begins between the change and
// the mark may miss it, and the next scan reads it: every event is marked after it was read, in the cycle
// that is open then, whether or not its directory was marked before. Only events of one batch share a mark.
//
// Not thread-safe. Takes the clock, the events, the marks and the gaps as parameters; does no I/O of its own.
class DriveWatch {
 public:
  struct Options {
    std::filesystem::path drive;
    // While the daemon accepts no marks. What exceeds it is a gap.
    std::size_t pending_bytes_max = std::size_t{8} << 20U;
    // Of unread events. What exceeds it is a gap.
    std::uint64_t queue_bytes_max = std::uint64_t{256} << 20U;
  };

  // All references must outlive it. `kept`: the source of an earlier process that missed nothing; null: there
  // is none. `gap_id`: the last gap of the drive, empty if there is none.
  DriveWatch(Options options, OpenSource open, MarkSink& marks, GapSink& gaps, const base::Clock& clock,
             std::unique_ptr<EventSource> kept, std::string gap_id);

  // Reads the events that wait, marks them, and retries what failed before. Never throws away an event
  // without a gap.
  void step();

  // How long a caller may wait for events until the next step is due.
  std::chrono::nanoseconds due_in() const;

  // To be waited for; -1: there is nothing to wait for.
  int descriptor() const { return source_ ? source_->descriptor() : -1; }

  // Whether every event that was read is marked or part of a stored gap.
  bool is_settled() const { return pending_.empty() && gap_reason_.empty(); }

  // Why the drive is not watched, or its marks are not acknowledged; empty if all is well.
  const std::string& error() const { return open_error_.empty() ? send_error_ : open_error_; }
  tracker::WatchFigures figures() const;

 private:
  bool open();
  void read();
  base::Result<bool> read_batch();
  void send();
  void store_gap();
  void lose(const std::string& why);
  void fail_to_send(const base::Error& why);
  void note_gap(const std::string& reason);
  void note_lasting_gap(const std::string& reason);  // at most once a minute

  const Options options_;
  const OpenSource open_source_;
  MarkSink& marks_;
  GapSink& gaps_;
  const base::Clock& clock_;

  std::unique_ptr<EventSource> source_;  // null: the drive is not watched at present
  EventMarks pending_;
  std::string gap_reason_;  // of a gap that is not stored yet; empty: none
  std::string gap_id_;
  std::string lost_reason_;  // why the drive is not watched any more; empty: since the start
  std::string open_error_;
  std::string send_error_;
  std::string gap_error_;
  base::SteadyTime open_at_{};
  base::SteadyTime lasting_gap_at_{};
  base::SteadyTime gaps_paid_until_{};
  base::SteadyTime send_at_{};
  std::chrono::nanoseconds pause_{0};
  std::optional<base::SteadyTime> pending_since_;
  tracker::WatchFigures figures_;
};

}  // namespace spoor::watch
