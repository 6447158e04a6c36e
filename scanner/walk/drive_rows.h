#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "scanner/store/change_log.h"
#include "scanner/store/directory_row.h"
#include "scanner/store/files.h"
#include "scanner/walk/directory_reader.h"
#include "scanner/walk/walk_context.h"

namespace spoor::scanner {

// Brings what the database holds of one drive in line with what its walk finds: the rows of directories, the
// names of their files, hard links and the change feed. Paths are logical ones.
//
// Throws as noted at WalkContext. Not thread-safe.
class DriveRows {
 public:
  // `drive` is its id in the database. `context` must outlive this.
  DriveRows(WalkContext& context, std::int64_t drive) : context_(context), drive_(drive) {}

  std::int64_t drive() const { return drive_; }
  DirectoryStore& directories() { return context_.transaction.directories(); }

  // Adds the root's row, or replaces `before`.
  void put_root(const DirectoryRow& row, const std::optional<DirectoryRow>& before);

  // Keeps the files of a listing, and moves them out of it. Before apply_listing(), with `row` as it is
  // stored, or that of a new directory. Returns the files of a new directory that has no id yet, for
  // add_files().
  std::optional<Files> take_files(std::string_view path, DirectoryRow& row, Listing& listing);
  void add_files(std::int64_t directory, const Files& files);

  // Applies what was read of a directory to its row and its links, and records the change, if there is one.
  // The sums of its subdirectories stay if `keeps_subdirectories`.
  void apply_listing(std::string_view path, DirectoryRow& row, const Listing& listing,
                     bool keeps_subdirectories);

  // Removes the row of a directory that is gone, and all below it. Its name is left to OpenDirectory.
  void erase(std::string_view path, const DirectoryRow& row);

  // The same for a directory on which another file system is mounted: it still exists.
  void erase_mounted_over(std::string_view path, const DirectoryRow& row);

 private:
  void record(std::string_view path, Change change);
  void replace_owners(std::string_view path, DirectoryRow& row, const Listing& listing);
  void take_out_owners(std::string_view path, const DirectoryRow& row);
  std::uint64_t erase_rows(std::string_view path, const DirectoryRow& row);

  WalkContext& context_;
  const std::int64_t drive_;
  std::size_t new_files_bytes_ = 0;  // of files that wait for add_files()
};

}  // namespace spoor::scanner
