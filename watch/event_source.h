#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "peer/http/watch_report.h"
#include "watch/directory_paths.h"
#include "watch/kernel_event.h"

namespace spoor::watch {

// The events of one drive that is being watched.
//
// Not thread-safe.
class EventSource {
 public:
  virtual ~EventSource() = default;

  // Call before the functions below, and leave() after them: in between, the drive cannot be unmounted. Fails
  // if it was, or is another directory now: then events may be lost.
  virtual base::Result<> enter() = 0;
  virtual void leave() = 0;

  // The events that wait, up to some number; nothing if there are none. Does not wait. Until settle(), they
  // count as in flight: if the process ends meanwhile, they are lost. Fails if events are lost.
  virtual base::Result<std::vector<KernelEvent>> read() = 0;
  virtual DirectoryPaths& paths() = 0;

  // Of the events that wait.
  virtual std::uint64_t queue_bytes() = 0;

  // All events that were read since this gap are marked.
  virtual void settle(const peer::DriveGap& gap) = 0;

  // The gap with which an earlier process settled it; empty for a source that begins here.
  virtual const peer::DriveGap& settled() const = 0;

  // The source ends for good: no later process continues it.
  virtual void discard() = 0;

  // Becomes readable when events arrive; -1: the source is not to be waited for.
  virtual int descriptor() const = 0;

  // The directories that Spoor writes to, below the drive.
  virtual std::vector<std::string> own_directories() const = 0;
};

// Begins to watch the drive.
using OpenSource = std::function<base::Result<std::unique_ptr<EventSource>>()>;

}  // namespace spoor::watch
