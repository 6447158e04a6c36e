// The open directories of a walk: those from the root of the drive to the one that is processed, and those
// below it that the walk will most likely process next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scanner/store/directory_row.h"
#include "scanner/store/directory_store.h"
#include "scanner/store/files.h"
#include "scanner/walk/drive_rows.h"
#include "scanner/walk/read_ahead.h"
#include "scanner/walk/scan_plan.h"
#include "scanner/walk/walk_context.h"

namespace spoor::scanner {

struct DueDirectory;

// A directory, some of whose subdirectories have not been read yet. Decides which of them are to be read, and
// sums up what is below it: see the two types below.
//
// Belongs to one Walker. Throws as noted at WalkContext; `path` is the logical path of the directory.
class OpenDirectory {
 public:
  struct Start {
    DirectoryRow row;
    std::optional<DirectoryRow> before;  // as it is stored; nothing for a new one
    Reason reason = Reason::clean;       // why it is read
    PlanCursor at;
    std::size_t path_bytes = 0;
  };

  // All must outlive it.
  OpenDirectory(Start start, WalkContext& context, DriveRows& rows);
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;
  virtual ~OpenDirectory();

  virtual bool all_decided() const = 0;
  // Decides on the next subdirectory; appends it to `due` if it is to be read.
  virtual void decide_next(std::string_view path) = 0;
  // How many more of its subdirectories may be due, while so many are due in all directories of the drive.
  virtual std::size_t room(std::size_t due_in_all) const = 0;

  // Adds a subdirectory that was due, and puts its new row (`before` is the one that it replaces); or one
  // with the row that is stored.
  void add(DirectoryRow child, const std::optional<DirectoryRow>& before);
  void add_unchanged(const DirectoryRow& child);

  // A subdirectory is gone, of which this was stored.
  void forget(const DirectoryRow& child);

  // Puts the names so far, and returns the row so far, to be put: each total in it is the sum of what is
  // stored. Its state lets any scan read it again that would miss something else.
  // `below` is the subdirectory that is open, null for none, and `row_below` its row so far.
  DirectoryRow keep_so_far(const OpenDirectory* below, const DirectoryRow& row_below);

  // Completes the row, after all subdirectories are decided and those due are added. Returns whether the row
  // differs from the stored one.
  virtual bool finish(std::string_view path) = 0;

  const std::optional<DirectoryRow>& before() const { return before_; }
  DirectoryRow& row() { return row_; }
  const DirectoryRow& row() const { return row_; }
  DirectoryRow take_row() { return std::move(row_); }
  std::size_t path_bytes() const { return path_bytes_; }
  const ResumePoint& resumed() const { return at_.resumed; }

  // Opened, it keeps the handle, and has the inode of the directory itself, which on some file systems no
  // listing gives.
  void set_open(DirectoryHandle read);
  bool is_open() const { return place && place->is_open(); }
  std::uint64_t inode() const { return inode_; }

  std::shared_ptr<ParentDirectory> place = {};  // null: closed, and not needed since
  std::list<DueDirectory> due = {};             // by name
  std::string last_done = {};                   // of those that were due; empty: none

 protected:
  PlanCursor below(std::string_view name) const;
  Reason reason_to_read(const PlanCursor& at, std::uint64_t inode,
                        const std::optional<DirectoryRow>& stored) const;

  // Puts the names of its subdirectories, and adds the sums of those that were due.
  void add_due_sums();
  bool differs() const { return !before_ || was_kept_ || row_ != *before_; }
  // Whether all its subdirectories have their stored names while it is open.
  virtual bool has_all_names() const = 0;
  // Adds the files that wait for the directory to have an id.
  virtual void put_files() {}

  WalkContext& context_;
  DriveRows& rows_;
  DirectoryRow row_;
  const std::optional<DirectoryRow> before_;
  // The sums of the subdirectories that were due. Apart, as sums that are too large could not be taken out
  // of again.
  DirectoryRow due_sums_;

 private:
  void change_name(const std::string& name, std::optional<NamedDirectory> to);
  void put_names();
  DirectoryRow row_so_far(const OpenDirectory* below, const DirectoryRow& row_below) const;

  const Reason reason_;
  const PlanCursor at_;
  const std::size_t path_bytes_;
  std::uint64_t inode_;
  NameChanges names_ = {};  // of subdirectories, not put yet
  DirectoryRow replaced_;   // the sums that were stored of those that were due, or are gone
  bool was_kept_ = false;   // its stored row is none of a whole walk
};

// A subdirectory that is to be read.
struct DueDirectory {
  std::string name;
  std::uint64_t inode = 0;
  std::optional<DirectoryRow> stored;
  PlanCursor at;
  Reason reason = Reason::clean;
  ReadAhead::Ticket ticket = {};                // null: not requested yet
  bool is_early = false;                        // it was requested by a plan that was dropped
  std::unique_ptr<OpenDirectory> planned = {};  // with what is due below it, if its entries are the same
};

// A directory that is new, or whose subdirectories may differ from those that are stored: each subdirectory
// of its listing is compared with the stored one of its name, those gone from the listing are removed, and
// its sums are built anew.
class ChangedDirectory final : public OpenDirectory {
 public:
  // `new_files`: those of a new directory, to be added once it has an id.
  ChangedDirectory(Start start, Subdirectories found, std::optional<Files> new_files, WalkContext& context,
                   DriveRows& rows);

  bool all_decided() const override { return decided_ == subdirectories_.size(); }
  void decide_next(std::string_view path) override;
  // Leaves some to the directories below it.
  std::size_t room(std::size_t /*due_in_all*/) const override {
    return due_max - std::min(due_max, due.size());
  }
  bool finish(std::string_view path) override;

 protected:
  bool has_all_names() const override { return false; }
  void put_files() override;

 private:
  std::optional<DirectoryRow> take_stored(std::string_view path, std::string_view name);
  void erase(std::string_view path, const DirectoryRow& child);

  static constexpr std::size_t due_max = 32;

  const Subdirectories subdirectories_;
  std::size_t decided_ = 0;  // of them
  std::optional<Files> new_files_;
  ChildRows stored_{rows_.directories(), before_ && before_->directories > 0 ? row_.id : 0};
};

// A directory with the subdirectories that are stored, and nothing left for this scan below it: only those
// that are marked are looked up, and its sums change by what these change. The drive is not needed for that:
// it is planned before it is known that the subdirectories are the same.
class UnchangedDirectory final : public OpenDirectory {
 public:
  // Whether a directory that is stored so, and is read for that reason, is one if its subdirectories are the
  // same.
  static bool may_be_one(const DirectoryRow& stored, Reason reason);

  using OpenDirectory::OpenDirectory;

  bool all_decided() const override { return all_looked_up_ && decided_ == marked_.size(); }
  void decide_next(std::string_view path) override;
  std::size_t room(std::size_t due_in_all) const override { return due_max - std::min(due_max, due_in_all); }
  bool finish(std::string_view path) override;

 protected:
  bool has_all_names() const override { return true; }

 private:
  static constexpr std::size_t due_max = 128;

  void look_up();

  std::vector<DirectoryRow> marked_ = {};  // some subdirectories, by name
  std::size_t decided_ = 0;                // of them
  bool all_looked_up_ = row_.directories == 0;
  std::optional<std::string> last_name_ = {};
  std::uint64_t skipped_ = row_.directories;  // of those stored below it, not below a due one
  bool has_lost_newest_ = false;              // a due one had the newest mtime of all
};

}  // namespace spoor::scanner
