// The open directories of a walk: those from the root of the drive to the one that is processed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "scanner/store/directory_row.h"
#include "scanner/store/directory_store.h"
#include "scanner/store/files.h"
#include "scanner/walk/drive_rows.h"
#include "scanner/walk/listing.h"
#include "scanner/walk/read_ahead.h"
#include "scanner/walk/scan_plan.h"
#include "scanner/walk/walk_context.h"
#include "tracker/filter/mark_cursor.h"

namespace spoor::scanner {

// A subdirectory that is to be read.
struct DueDirectory {
  std::string name;
  std::uint64_t inode = 0;
  std::optional<DirectoryRow> stored;
  tracker::DriveCursor marks;
  Reason reason = Reason::clean;
  ReadAhead::Ticket ticket = {};
};

// A directory that has been read, some of its subdirectories not yet. Decides which of them are to be read,
// and sums up what is below it: see the two types below.
//
// Belongs to one Walker. Functions fail where the database does, or with Errc::interrupted; `path` is the
// logical path of the directory.
class OpenDirectory {
 public:
  // The directory, once its listing was taken over into its row.
  struct Found {
    DirectoryRead read;
    DirectoryRow row;
    std::optional<DirectoryRow> before;  // as it is stored; nothing for a new one
    std::optional<Files> new_files;      // of a new one, to be added once it has an id
    Reason reason = Reason::clean;       // why it was read
    tracker::DriveCursor marks;          // at this directory
    std::size_t path_bytes = 0;
  };

  // All must outlive it.
  OpenDirectory(Found found, WalkContext& context, const ScanPlan& plan, DriveRows& rows);
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;
  virtual ~OpenDirectory() = default;

  bool all_decided() const { return decided_ == subdirectories_.size(); }
  // Decides on the next subdirectory; appends it to `due` if it is to be read.
  virtual base::Result<> decide_next(std::string_view path) = 0;

  // Adds a subdirectory that was due, and puts its new row (`before` is the stored one, if its name stays);
  // or one with the row that is stored.
  base::Result<> add(DirectoryRow child, const std::optional<DirectoryRow>& before);
  void add_unchanged(const DirectoryRow& child) { due_sums_.add_child(child); }

  // A subdirectory is gone.
  base::Result<> forget(const std::string& name);

  // Completes the row, after all subdirectories are decided and those due are added. Returns whether the row
  // differs from the stored one.
  base::Result<bool> finish(std::string_view path);

  const std::optional<DirectoryRow>& before() const { return before_; }
  const DirectoryRow& row() const { return row_; }
  DirectoryRow take_row() { return std::move(row_); }
  std::size_t path_bytes() const { return path_bytes_; }
  // As the directory itself has it, which on some file systems no listing does.
  std::uint64_t inode() const { return inode_; }

  // Directories below it that are skipped, in proportion to the subdirectories decided.
  virtual std::uint64_t skipped_so_far() const { return 0; }

  ReadAhead::Parent handle;                 // null: closed
  std::shared_ptr<ClosedDirectory> closed;  // then, once it is needed
  std::deque<DueDirectory> due = {};        // by name
  std::size_t requested = 0;                // of those due, the first: they have a ticket

 protected:
  // A subdirectory to decide on, with its marks.
  struct Next {
    Subdirectory entry;
    tracker::DriveCursor marks;
    ReadAhead::Ticket ticket;  // null if it is not read ahead
  };

  // Goes to the next subdirectory.
  Next next();
  // Passes by subdirectories up to the next marked one, where the marks were followed.
  void skip_to_marked();
  Reason reason_to_read(const Next& next, const std::optional<DirectoryRow>& stored) const;
  void add_due(Next next, std::optional<DirectoryRow> stored, Reason reason);

  // Sums up the row: what is below it was decided, read and added.
  virtual base::Result<> sum_up(std::string_view path) = 0;
  // Puts the names of its subdirectories, and adds the sums of those that were due.
  base::Result<> add_due_sums();

  WalkContext& context_;
  DriveRows& rows_;
  DirectoryRow row_;
  const std::optional<DirectoryRow> before_;
  Subdirectories subdirectories_;
  std::size_t decided_ = 0;  // of them
  // The sums of the subdirectories that were due. Apart, as sums that are too large could not be taken out
  // of again.
  DirectoryRow due_sums_;

 private:
  base::Result<> change_name(const std::string& name, std::optional<NamedDirectory> to);
  base::Result<> put_names();

  const ScanPlan& plan_;
  const std::uint64_t inode_;
  std::optional<std::vector<MarkedSubdirectory>> marked_;  // nothing: the marks were not followed
  std::size_t marked_decided_ = 0;                         // of them
  const std::optional<Files> new_files_;
  const Reason reason_;
  const tracker::DriveCursor marks_;
  const std::size_t path_bytes_;
  NameChanges names_ = {};  // of subdirectories, not put yet
};

// A directory that is new, or whose entries may differ from those that are stored: each subdirectory of its
// listing is compared with the stored one of its name, those gone from the listing are removed, and its sums
// are built anew.
class ChangedDirectory final : public OpenDirectory {
 public:
  using OpenDirectory::OpenDirectory;

  base::Result<> decide_next(std::string_view path) override;

 private:
  base::Result<> sum_up(std::string_view path) override;
  base::Result<std::optional<DirectoryRow>> take_stored(std::string_view path, std::string_view name);
  base::Result<> erase(std::string_view path, const DirectoryRow& child);

  StoredChildren stored_{rows_.directories(), before_ && before_->directories > 0 ? row_.id : 0};
};

// A directory with the entries that are stored, and nothing left for this scan below it: only its marked
// subdirectories are looked up, and its sums change by what these change.
class UnchangedDirectory final : public OpenDirectory {
 public:
  // Whether a directory that is stored so, and was read for that reason, is one.
  static bool is_one(const DirectoryRow& stored, const Listing& listing, Reason reason);

  using OpenDirectory::OpenDirectory;

  base::Result<> decide_next(std::string_view path) override;
  std::uint64_t skipped_so_far() const override;

 private:
  base::Result<> sum_up(std::string_view path) override;
  base::Result<std::optional<DirectoryRow>> find_stored(const Next& subdirectory);
  void take_out(const DirectoryRow& child);

  std::uint64_t skipped_ = row_.directories;  // of those stored below it, not below a due one
  bool has_lost_newest_ = false;              // a due one had the newest mtime of all
};

}  // namespace spoor::scanner
