#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "scanner/unfinished_scan.h"
#include "scanner/walk_log.h"
#include "scanner/walker.h"

namespace spoor::scanner {

struct Drive {
  std::filesystem::path path;
  // Why it must not be walked this time, as a sentence to be shown; empty where it may be. For a
  // caller that knows that it is not the drive it should be.
  std::string refused;
  // The identity it has to carry; empty where that is not known. Another one than at the last scan is another
  // drive: what is stored of it is forgotten, and all of it walked. It is checked on the descriptor of the
  // root when the walk begins, and again before the scan commits.
  std::string identity = {};
  // It is refused since it overlaps with another drive: what is stored of it is forgotten.
  bool overlaps = false;
};

// A drive that could not be walked: its totals stay as they were, and all of it is walked once it can
// be, since by then the marks are used up.
struct FailedDrive {
  std::filesystem::path path;
  std::string message;
};

// Walks one drive from its root, as far as the plan asks.
//
// A directory that does not carry the drive's identity is not walked.
//
// An empty directory in the place of a drive that held something looks like a drive that is not
// mounted, and is a failed one, unless `take_as_is`.
//
// Not thread-safe.
class DriveWalk {
 public:
  // `id` is its id in the database. All must outlive it; `unfinished` may be null.
  DriveWalk(WalkContext& context, const Drive& drive, std::int64_t id, bool take_as_is,
            UnfinishedScan* unfinished, const base::Clock& clock);

  // Reads the root, if it is to be read. Fails where the database does, or with Errc::interrupted. Once, and
  // first.
  base::Result<> begin();

  // How the drive failed as a whole, if it did.
  const std::optional<FailedDrive>& failed() const { return failed_; }

  // As those of Walker.
  bool is_over() const { return !walker_ || walker_->is_over(); }
  bool would_wait() const { return walker_->would_wait(); }
  base::Result<> step(bool may_wait) { return walker_->step(may_wait); }

  // Why the directory at the drive's path is not the one that was walked or left as it is; nothing where it
  // is, or where the drive failed. Once the walk is over: what was read must not be committed otherwise.
  std::optional<std::string> why_another() const;

  // So that a scan that does not come to its end loses nothing of what it read.
  void flush_log();

  // Why not all that was read was kept for such a scan; nothing where it was.
  std::optional<base::Error> log_failure() const;

 private:
  // A root that was found and listed, and why it is read.
  struct OpenRoot {
    DirectoryHandle handle;
    Listing listing;
    Reason reason = Reason::clean;
  };

  base::Result<DirectoryHandle> open_checked() const;
  static bool looks_unmounted(const OpenRoot& root, const DirectoryRow& stored);
  base::Result<OpenRoot> open();
  Reason reason_to_read(const DirectoryHandle& handle) const;
  base::Result<> walk(OpenRoot root);
  base::Result<> fail(const std::string& why);

  WalkContext& context_;
  const Drive& drive_;
  const std::int64_t parent_of_root_;
  const bool take_as_is_;
  UnfinishedScan* const unfinished_;
  const base::Clock& clock_;
  std::optional<DirectoryRow> stored_;
  std::optional<FailedDrive> failed_;
  DirectoryHandle seen_;  // its root when the walk began; closed
  std::optional<WalkLog> log_;
  std::optional<Walker> walker_;
};

}  // namespace spoor::scanner
