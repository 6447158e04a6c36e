#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "scanner/walk/scan_drives.h"
#include "scanner/walk/scan_plan.h"
#include "scanner/walk/walk_context.h"
#include "scanner/walk/walker.h"

namespace spoor::scanner {

// Walks one drive from its root, as far as the plan asks for it.
//
// A directory that does not carry the drive's identity is not walked. An empty directory in the place of a
// drive that held something looks like a drive that is not mounted, and is a failed one, unless the scan is a
// full one.
//
// Not thread-safe.
class DriveWalk {
 public:
  // All must outlive it.
  DriveWalk(WalkContext& context, const ScanPlan& plan, const KnownDrive& drive)
      : context_(context), plan_(plan), drive_(drive.drive), id_(drive.id) {}

  // Reads the root, if it is to be read. Fails where the database does, or with Errc::interrupted. Once, and
  // first.
  base::Result<> begin();

  // How the drive failed as a whole, if it did: its totals stay as they were, and all of it is walked once it
  // can be, since by then the marks are used up.
  const std::optional<ScanError>& failed() const { return failed_; }

  // As those of Walker.
  bool is_over() const { return !walker_ || walker_->is_over(); }
  bool would_wait() const { return walker_->would_wait(); }
  base::Result<> step(bool may_wait) { return walker_->step(may_wait); }

  const Drive& drive() const { return drive_; }

  // Why the directory at the drive's path is not the one that was walked, or skipped; nothing if it is, or if
  // the drive failed. Once the walk is over: if it is not, what was read must not be committed.
  std::optional<std::string> why_another() const;

  // Between steps, before a commit: brings the rows in line with what was walked, and adds where the walk is.
  // Fails where the database does.
  base::Result<> keep_so_far(DrivePlaces& places);

  // Whether nothing was walked since.
  bool is_kept() const { return is_kept_; }

 private:
  base::Result<DirectoryHandle> open_checked() const;
  bool looks_unmounted(const DirectoryRead& root) const;
  base::Result<DirectoryRead> open();
  PlanCursor cursor() const;
  Reason reason_to_read(const DirectoryHandle& handle) const;
  base::Result<> walk(DirectoryRead root);
  base::Result<> fail(const std::string& why);
  DirectoryStore& store() const { return context_.transaction.directories(); }
  std::int64_t parent_of_root() const { return DirectoryStore::parent_of_root(id_); }

  WalkContext& context_;
  const ScanPlan& plan_;
  const Drive& drive_;
  const std::int64_t id_;
  std::optional<DirectoryRow> stored_;
  std::optional<ScanError> failed_;
  DirectoryFacts seen_;  // its root when the walk began
  bool is_kept_ = false;
  std::optional<Walker> walker_;
};

// Walks all drives on this thread, each as soon as it has something ready: a slow drive does not hold up the
// others. Calls `between` after each round of steps. Fails as DriveWalk and `between` do.
base::Result<> walk_side_by_side(std::deque<DriveWalk>& walks,
                                 const std::function<base::Result<>()>& between);

}  // namespace spoor::scanner
