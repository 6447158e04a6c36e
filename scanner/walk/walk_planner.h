#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "scanner/walk/drive_rows.h"
#include "scanner/walk/open_directory.h"
#include "scanner/walk/read_ahead.h"
#include "scanner/walk/walk_context.h"

namespace spoor::scanner {

// Where the walk of a drive is.
struct WalkStack {
  std::vector<std::unique_ptr<OpenDirectory>> open;  // from the root down
  std::string path;                                  // logical, of the directory that is processed
};

// Plans what the walk of one drive reads next, and lets threads read it meanwhile (read_ahead.h): of the
// subdirectories of an open directory, and below those of which only what is marked is read, from what is
// stored alone, as that most likely still holds. If it does not, the plan is dropped, and what was read for
// it is used where it still fits.
//
// Throws as noted at WalkContext. Not thread-safe.
class WalkPlanner {
 public:
  // All must outlive it; `root` is that of the drive.
  WalkPlanner(WalkContext& context, DriveRows& rows, const WalkStack& stack, const DirectoryHandle& root);

  // Decides on the next subdirectories: at least on one of the directory that is open last, if none is due.
  void plan_ahead();

  // Whether read() of the next one would wait for another thread.
  bool would_wait() const;

  // The next one that is due, and what it was read as: by another thread, or now.
  DueDirectory take_next(OpenDirectory& parent);
  base::Result<DirectoryRead> read(OpenDirectory& parent, DueDirectory& child);

  // A directory is open now that was not planned; or an open one is finished.
  void add(OpenDirectory& directory) { planning_.push_back({&directory, stack_.path}); }
  void finish(const OpenDirectory& directory);

  // The directory is not as it was planned: what was due below it is decided anew. What was read of it is
  // kept until drop_early(), once that is done.
  void drop(DueDirectory& child);
  void drop_early();

 private:
  using Place = std::shared_ptr<ParentDirectory>;
  // A directory that is open, or will most likely be.
  struct Planned {
    OpenDirectory* directory = nullptr;
    std::string path;
  };

  bool needs_next() const;
  std::size_t room(const OpenDirectory& level) const;
  void request(OpenDirectory& parent, DueDirectory& child, std::string path);
  ReadAhead::Ticket ticket(Place parent, const DueDirectory& child, std::string path) const;
  bool times_tell(const DirectoryRow& row) const;
  std::unique_ptr<OpenDirectory> plan_below(const ParentDirectory& parent, const DueDirectory& child,
                                            std::size_t path_bytes);
  Place place_of(OpenDirectory& directory) const;

  WalkContext& context_;
  DriveRows& rows_;
  const WalkStack& stack_;
  const std::uint64_t mount_;  // of the drive
  const bool times_tell_;      // whether the entries of a directory changed
  ReadAhead read_ahead_;
  std::vector<Planned> planning_;                   // some all decided; the last is decided on first
  std::size_t due_ = 0;                             // in all of them
  std::vector<ReadAhead::Ticket> requested_;        // to be submitted
  std::map<std::string, ReadAhead::Ticket> early_;  // of plans that were dropped, by path
};

}  // namespace spoor::scanner
