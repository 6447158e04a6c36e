#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file_system.h"
#include "peer/http/watch_report.h"
#include "watch/fanotify_group.h"

namespace spoor::watch {

// What a group watches, and whether a process that ended left anything undone.
struct GroupNote {
  std::filesystem::path drive = {};
  dev_t device = 0;
  ino_t inode = 0;
  peer::DriveGap gap = {};  // the drive's last one

  friend bool operator==(const GroupNote&, const GroupNote&) = default;
};

// Keeps a fanotify group, with its queue, over a restart of this process: the service manager holds the group
// and a note on it (FDSTORE in sd_notify(3), FileDescriptorStoreMax= in systemd.service(5)). Without a
// service manager that does so, nothing is kept.
//
// The note is in memory (memfd_create(2)): it lasts exactly as long as the group does.
//
// Not thread-safe.
class KeptGroup {
 public:
  // The groups that earlier processes of this service left. Removes them from the environment.
  static std::vector<KeptGroup> take_passed();

  // Stores the group, which has events in flight. Failures are logged: then the next start is a gap.
  KeptGroup(FanotifyGroup group, const GroupNote& note);

  FanotifyGroup& group() { return group_; }

  // The last note; nothing if events were in flight when the earlier process ended.
  std::optional<GroupNote> settled() const;

  // Reads events (FanotifyGroup::read), which are in flight from before they leave the queue.
  base::Result<std::vector<KernelEvent>> read();

  void set_settled(const GroupNote& note);

  // The service manager closes the group, too.
  void discard() const;

 private:
  KeptGroup(FanotifyGroup group, base::Descriptor note, std::string name)
      : group_(std::move(group)), note_(std::move(note)), name_(std::move(name)) {}

  void store() const;
  void set_in_flight();

  FanotifyGroup group_;
  base::Descriptor note_;
  std::string name_;
  bool is_in_flight_ = false;
  std::string written_;
};

}  // namespace spoor::watch
