#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "scanner/walk/drive_rows.h"
#include "scanner/walk/open_directory.h"
#include "scanner/walk/scan_plan.h"
#include "scanner/walk/walk_context.h"
#include "scanner/walk/walk_planner.h"

namespace spoor::scanner {

// Walks one drive below its root, and brings the rows of its directories up to date.
//
// A directory for which the plan has no reason keeps its row, and is not touched. One that is read gets new
// totals, and the plan decides on its subdirectories; those gone from its listing are removed with all below.
// A directory that can't be read keeps its totals and all below it, and is left for the next scan.
//
// One thread decides and writes, in depth and by name; others read what it plans (walk_planner.h). Rows of
// new directories are written children first, in the order of their ids, so that they are appended; rows that
// would stay the same are not written, and names only where they change. No recursion; the open descriptors
// are bounded, however deep a tree.
//
// Throws as noted at WalkContext. Not thread-safe.
class Walker {
 public:
  // `id` is that of the drive in the database; `root` is the plan's cursor there. All must outlive it.
  Walker(WalkContext& context, const PlanCursor& root, const Drive& drive, std::int64_t id)
      : context_(context), drive_(drive), root_(root), rows_(context, id) {}

  // Takes the root as read, the row it had (nothing for a new one) and the reason why it was read. Once, and
  // first.
  void begin(DirectoryRead root, std::optional<DirectoryRow> stored, Reason reason);

  bool is_over() const { return stack_.open.empty(); }

  // Whether step() would wait for a directory that another thread is reading.
  bool would_wait() const { return planner_ && planner_->would_wait(); }

  // Processes the next directory, or only requests it if that would wait and may not.
  void step(bool may_wait);

  // Between steps: puts the rows of all open directories, so that what was walked can be committed.
  void keep_so_far();

  // Where a walk that resumes this one begins, after keep_so_far(); nothing if that is where this one did.
  std::optional<std::string> place() const;

 private:
  void visit(OpenDirectory& parent);
  void enter(OpenDirectory& parent, DueDirectory child, DirectoryRead read);
  void push(DueDirectory directory, DirectoryRead read);
  bool is_unchanged(const DueDirectory& directory, const DirectoryRead& read);
  std::unique_ptr<OpenDirectory> unchanged(DueDirectory directory, DirectoryRead& read);
  std::unique_ptr<OpenDirectory> changed(DueDirectory directory, DirectoryRead& read);
  void close_upper();
  void finish();

  void erase_stored(OpenDirectory& parent, DueDirectory& child);
  void leave_unread(OpenDirectory& parent, DueDirectory child, const base::Error& error);
  void keep_mount_point(OpenDirectory& parent, DueDirectory child);

  void report_progress() const;
  std::string real_path() const;

  WalkContext& context_;
  const Drive& drive_;
  const PlanCursor root_;
  DriveRows rows_;
  WalkStack stack_;
  std::optional<WalkPlanner> planner_;  // while it walks
};

}  // namespace spoor::scanner
