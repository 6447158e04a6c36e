#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file_system.h"
#include "peer/http/watch_report.h"
#include "watch/event_source.h"

namespace spoor::watch {

// The events of fanotify(7), as read(2) returns them from a group with FAN_REPORT_DFID_NAME and
// FAN_REPORT_FID. Fails with std::errc::bad_message if the bytes are not whole events of this version of the
// interface, or an event other than FAN_Q_OVERFLOW names nothing: then nothing is known of what changed.
base::Result<std::vector<KernelEvent>> decode_kernel_events(std::span<const std::byte> bytes);

// What a group watches, and whether a process that ended left anything undone.
struct GroupNote {
  std::filesystem::path drive = {};
  dev_t device = 0;
  ino_t inode = 0;
  peer::DriveGap gap = {};  // the drive's last one

  friend bool operator==(const GroupNote&, const GroupNote&) = default;
};

// The kernel's queue of the events of one file system.
//
// The kernel limits the queue, also while this process hangs, if fs.fanotify.max_queued_events is at least
// 131,072. A smaller limit (16,384 by default) is full within half a second of many small changes, each time
// at the cost of a walk of the drive: then the queue has none, and the owner bounds the memory
// (queue_bytes()): it reads all the time, also while the daemon is down.
//
// A group can be kept over a restart of this process: the service manager holds it, and a note on it (FDSTORE
// in sd_notify(3), FileDescriptorStoreMax= in systemd.service(5)). Without a service manager that does so,
// nothing is kept. The note is in memory (memfd_create(2)): it lasts exactly as long as the group does.
//
// Not thread-safe.
class FanotifyGroup {
 public:
  // Watches the file system of an open directory. Fails, with advice, without CAP_SYS_ADMIN, or if that file
  // system cannot be watched; `path` is for messages.
  static base::Result<FanotifyGroup> open(int directory, const std::filesystem::path& path);

  // The groups that earlier processes of this service left. Removes them from the environment.
  static std::vector<FanotifyGroup> take_passed();

  // Keeps the group, whose events are in flight, until discard(). Failures are logged: then the next start is
  // a gap.
  void keep(const std::filesystem::path& drive);
  void discard() const;

  // The last note; nothing if events were in flight when the earlier process ended.
  std::optional<GroupNote> settled() const;
  void set_settled(const GroupNote& note);

  int descriptor() const { return descriptor_.get(); }

  // Whether the file system is still watched: not after it was unmounted.
  bool is_watching() const;

  // Of the events in the queue, as they are read; the kernel needs two to four times as much.
  std::uint64_t queue_bytes() const;

  // What is in the queue, up to the size of the buffer; nothing if it is empty. Does not wait. The events are
  // in flight from before they leave the queue.
  base::Result<std::vector<KernelEvent>> read();

 private:
  FanotifyGroup(base::Descriptor descriptor, base::Descriptor note, std::string name = {})
      : descriptor_(std::move(descriptor)), note_(std::move(note)), name_(std::move(name)) {}

  base::Descriptor descriptor_;
  base::Descriptor note_;
  std::string name_;  // of both, at the service manager
  bool is_in_flight_ = false;
  std::vector<std::byte> buffer_;
};

}  // namespace spoor::watch
