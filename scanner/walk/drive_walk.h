// The drives of a scan.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "scanner/walk/walk_context.h"
#include "scanner/walk/walker.h"

namespace spoor::scanner {

// Gives each path its one spelling: "/mnt/a/" and "/mnt/./a" become "/mnt/a". Refuses drives that overlap
// with another one. Fails with std::errc::invalid_argument if a path is relative, or a drive is listed twice.
base::Result<> check_drives(std::vector<Drive>& drives);

// Brings the drives of the database in line with those of the scan: adds new ones, removes those that are not
// listed, and empties those that are now another drive, or refused because they overlap. The root of a drive
// with a new gap counts as unread.
std::vector<KnownDrive> match_drives(WalkContext& context);

// Walks one drive from its root, as far as the plan asks for it.
//
// A directory that does not carry the drive's identity is not walked. An empty directory in the place of a
// drive that held something looks like a drive that is not mounted, and is a failed one, unless the scan is a
// full one.
//
// Throws as noted at WalkContext. Not thread-safe.
class DriveWalk {
 public:
  // Both must outlive it.
  DriveWalk(WalkContext& context, const KnownDrive& drive)
      : context_(context), drive_(drive.drive), id_(drive.id) {}

  // Reads the root, if it is to be read. Once, and first.
  void begin();

  // How the drive failed as a whole, if it did: its totals stay as they were, and all of it is walked once it
  // can be, since by then the marks are used up.
  const std::optional<ScanError>& failed() const { return failed_; }

  // As those of Walker.
  bool is_over() const { return !walker_ || walker_->is_over(); }
  bool would_wait() const { return walker_->would_wait(); }
  void step(bool may_wait) { walker_->step(may_wait); }

  const Drive& drive() const { return drive_; }
  std::int64_t id() const { return id_; }  // in the database

  // Why the directory at the drive's path is not the one that was walked, or skipped; nothing if it is, or if
  // the drive failed. Once the walk is over: if it is not, what was read must not be committed.
  std::optional<std::string> why_another() const;

  // Between steps, before a commit: brings the rows in line with what was walked, and adds where the walk is.
  void keep_so_far(DrivePlaces& places);

  // Whether nothing was walked since.
  bool is_kept() const { return is_kept_; }

 private:
  base::Result<DirectoryRead> open();
  bool looks_unmounted(const DirectoryRead& root) const;
  PlanCursor cursor() const;
  Reason reason_to_read(const DirectoryHandle& handle) const;
  void walk(DirectoryRead root);
  void fail(const std::string& why);
  DirectoryStore& store() const { return context_.transaction.directories(); }

  WalkContext& context_;
  const Drive& drive_;
  const std::int64_t id_;
  std::optional<DirectoryRow> stored_;
  std::optional<ScanError> failed_;
  DirectoryFacts seen_;  // its root when the walk began
  bool is_kept_ = false;
  std::optional<Walker> walker_;
};

// Walks all drives on this thread, each as soon as it has something ready: a slow drive does not hold up the
// others. Calls `between` after each round of steps.
void walk_side_by_side(std::deque<DriveWalk>& walks, const std::function<void()>& between);

}  // namespace spoor::scanner
