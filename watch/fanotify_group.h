#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file_system.h"
#include "watch/kernel_event.h"

namespace spoor::watch {

// The kernel's queue of the events of one file system (fanotify(7)).
//
// The kernel limits the queue, also while this process hangs, if fs.fanotify.max_queued_events is at least
// 131,072. A smaller limit (16,384 by default) is full within half a second of many small changes, each time
// at the cost of a walk of the drive: then the queue has none, and the owner bounds the memory
// (queue_bytes()): it reads all the time, also while the daemon is down.
//
// Not thread-safe.
class FanotifyGroup {
 public:
  // Watches the file system of an open directory. Fails, with advice, without CAP_SYS_ADMIN, or if that file
  // system cannot be watched; `path` is for messages.
  static base::Result<FanotifyGroup> open(int directory, const std::filesystem::path& path);

  // A group that an earlier process opened.
  explicit FanotifyGroup(base::Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  int descriptor() const { return descriptor_.get(); }

  // Whether the file system is still watched: not after it was unmounted.
  bool is_watching() const;

  bool has_events() const;

  // Of the events in the queue, as they are read; the kernel needs two to four times as much.
  std::uint64_t queue_bytes() const;

  // What is in the queue, up to the size of the buffer; nothing if it is empty. Does not wait.
  base::Result<std::vector<KernelEvent>> read();

 private:
  base::Descriptor descriptor_;
  std::vector<std::byte> buffer_;
};

}  // namespace spoor::watch
