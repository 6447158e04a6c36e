#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "scanner/walk/drive_rows.h"
#include "scanner/walk/open_directory.h"
#include "scanner/walk/read_ahead.h"
#include "scanner/walk/scan_plan.h"
#include "scanner/walk/walk_context.h"

namespace spoor::scanner {

// Walks one drive below its root, and brings the rows of its directories up to date.
//
// A directory for which the plan has no reason keeps its row, and is not touched. One that is read gets new
// totals, and the plan decides on its subdirectories; those gone from its listing are removed with all below.
// A directory that can't be read keeps its totals and all below it, and is left for the next scan.
//
// One thread decides and writes, in depth and by name. It plans ahead what is to be read, and other threads
// read that meanwhile (read_ahead.h): of the subdirectories of a directory, and below those of which only
// what is marked is read, as what is stored of them most likely still holds. Rows of new directories are
// written children first, in the order of their ids, so that they are appended; rows that would stay the same
// are not written, and names only where they change. No recursion; the open descriptors are bounded, however
// deep a tree.
//
// Not thread-safe.
class Walker {
 public:
  // `id` is that of the drive in the database; `root` is the plan's cursor there. All must outlive it.
  Walker(WalkContext& context, const ScanPlan& plan, const PlanCursor& root, const Drive& drive,
         std::int64_t id);

  // Takes the root as read, the row it had (nothing for a new one) and the reason why it was read. Fails
  // where the database does. Once, and first.
  base::Result<> begin(DirectoryRead root, std::optional<DirectoryRow> stored, Reason reason);

  bool is_over() const { return open_.empty(); }

  // Whether step() would wait for a directory that another thread is reading.
  bool would_wait() const;

  // Processes the next directory, or only requests it if that would wait and may not. Fails where the
  // database does, or with Errc::interrupted.
  base::Result<> step(bool may_wait);

  // Between steps: puts the rows of all open directories, so that what was walked can be committed. Fails
  // where the database does.
  base::Result<> keep_so_far();

  // Where a walk that resumes this one begins, after keep_so_far().
  std::string place() const;

 private:
  // A directory that is open, or will most likely be.
  struct Planned {
    OpenDirectory* directory = nullptr;
    std::string path;
  };

  base::Result<> plan_ahead();
  bool needs_next() const;
  std::size_t room(const OpenDirectory& level) const;
  base::Result<> request(OpenDirectory& parent, DueDirectory& child, std::string path);
  ReadAhead::Ticket ticket(const ReadAhead::AnyParent& from, const DueDirectory& child,
                           std::string path) const;
  bool times_tell(const DirectoryRow& row) const;
  std::unique_ptr<UnchangedDirectory> plan_below(const ReadAhead::AnyParent& from, const DueDirectory& child,
                                                 std::size_t path_bytes);
  ReadAhead::AnyParent way_from(OpenDirectory& parent) const;
  std::shared_ptr<ClosedDirectory> closed_again(const OpenDirectory& directory) const;
  base::Result<> visit(OpenDirectory& parent);
  base::Result<DirectoryRead> read(OpenDirectory& parent, DueDirectory& child);
  base::Result<> enter(OpenDirectory& parent, DueDirectory child, DirectoryRead read);
  base::Result<> push(DueDirectory directory, DirectoryRead read);
  base::Result<bool> is_unchanged(const DueDirectory& directory, const DirectoryRead& read);
  base::Result<> push_unchanged(DueDirectory directory, DirectoryRead read);
  base::Result<> push_changed(DueDirectory directory, DirectoryRead read);
  void open(std::unique_ptr<OpenDirectory> directory, DirectoryHandle handle);
  void drop_plan(DueDirectory& child);
  static bool is_it(const base::Result<DirectoryRead>& early, const DueDirectory& child);
  void drop_early_below_path();
  void close_upper();
  base::Result<> finish();

  base::Result<> erase_stored(OpenDirectory& parent, DueDirectory& child);
  base::Result<> leave_unread(OpenDirectory& parent, DueDirectory child, const base::Error& error);
  base::Result<> keep_mount_point(OpenDirectory& parent, DueDirectory child);

  void report_progress() const;
  std::string real_path() const;

  WalkContext& context_;
  const ScanPlan& plan_;
  const std::filesystem::path drive_path_;
  const PlanCursor root_;
  DriveRows rows_;
  const std::int64_t drive_;
  std::optional<ReadAhead> read_ahead_;
  std::uint64_t mount_ = 0;                           // of the drive
  bool times_tell_ = false;                           // whether the entries of a directory changed
  std::string path_;                                  // logical, of the directory that is processed
  std::vector<std::unique_ptr<OpenDirectory>> open_;  // from the root down
  std::vector<Planned> planning_;                     // some all decided; the last is decided on first
  std::size_t due_ = 0;                               // in all of them
  std::vector<ReadAhead::Ticket> requested_;          // to be submitted
  std::map<std::string, ReadAhead::Ticket> early_;    // of plans that were dropped, by path
};

}  // namespace spoor::scanner
