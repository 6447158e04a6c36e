#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scanner/errors.h"
#include "scanner/history/history_options.h"
#include "scanner/store/usage_database.h"
#include "scanner/walk/scan_input.h"
#include "scanner/walk/scan_plan.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {

// Something that was left for the next scan.
struct ScanError {
  std::string path;     // the real one, drive included
  std::string message;  // what happened to it
};

// A drive of the scan, and its id in the database.
struct KnownDrive {
  Drive drive;
  std::int64_t id = 0;
};

// Where an unfinished scan is on each drive (ResumePoint), by its id; nothing: the drive is done.
using DrivePlaces = std::map<std::int64_t, std::optional<std::string>>;

// What the audit and the walks of all drives share in one scan. All that is referred to must outlive it.
//
// What works on it throws SqliteError where the database fails, and base::Failure with Errc::interrupted
// after a stop was requested: that ends the scan. run_scan() returns it as an error.
//
// Not thread-safe.
struct WalkContext {
  const ScanOptions& options;
  const ScanInput& input;
  const ScanEnvironment& environment;
  ScanTransaction& transaction;
  Pace pace = {options.max_dirs_per_second, environment.clock, environment.waiter};

  std::optional<ScanPlan> plan = {};  // once the audit has run

  // The results, of all drives.
  WalkFigures figures = {};
  std::uint64_t dirs_known = 0;          // before the scan
  std::uint64_t error_count = 0;         // all errors
  std::vector<ScanError> errors = {};    // the first ones
  std::uint64_t mount_count = 0;         // mount points that were found and not entered
  std::vector<std::string> mounts = {};  // the first ones: real paths
  // Drives that are walked in full because of a gap, and its reason.
  std::vector<ScanError> drive_gaps = {};

  // A directory that the last scan knew and that changed since has later times than this, whatever happened
  // to the clock; the lowest value if that is not known.
  std::int64_t settled_before_ns = std::numeric_limits<std::int64_t>::min();
  // What the audit visited on the drive of this id: after `after`, or from the root on, up to `last`.
  struct Audited {
    std::int64_t drive = 0;
    std::optional<std::string> after;
    std::string last;
  };
  std::vector<Audited> audited = {};

  bool is_resumed = false;  // another scan with the same input and options has begun this one
  // Of the scan that is resumed. A drive that is to be walked from its root on has none.
  DrivePlaces places = {};

  // Commits what was done so far, for a scan that resumes this one.
  std::function<void()> commit_so_far = {};

  // Whose totals may have changed.
  TouchedPaths touched = TouchedPaths(options.history);

  bool is_audited(std::int64_t drive, std::string_view path) const {
    return std::ranges::any_of(audited, [&](const Audited& each) {
      return each.drive == drive && !tracker::is_before_in_walk(each.last, path) &&
             (!each.after || tracker::is_before_in_walk(*each.after, path));
    });
  }

  void add_error(std::string path, std::string message) {
    ++error_count;
    if (errors.size() < options.errors_kept_max) errors.push_back({std::move(path), std::move(message)});
  }

  void add_mount(std::string path) {
    ++mount_count;
    if (mounts.size() < options.errors_kept_max) mounts.push_back(std::move(path));
  }

  void throw_if_stopped() const { scanner::throw_if_stopped(environment.stop); }

  // Before each directory that is read.
  void wait_until_due() {
    pace.wait_until_due(environment.stop);
    throw_if_stopped();
  }

  ListingParts listing_parts() const {
    return {.files = transaction.files() != nullptr, .owners = transaction.owners() != nullptr};
  }

  // Drives are walked side by side by one thread.
  bool has_other_drives() const { return options.drives.size() > 1; }

  // Threads that read ahead, for each drive. The walking thread reads as well if there is but one drive.
  std::size_t readers() const {
    if (options.threads <= 1) return 0;
    if (!has_other_drives()) return options.threads - 1;
    return std::max<std::size_t>(options.threads / options.drives.size(), 1);
  }

  // Directories of each drive that are open, or may soon be, are about as many, and one in 64 of a deeper
  // tree.
  std::size_t open_directories_max() const {
    return options.open_directories_max / std::max<std::size_t>(options.drives.size(), 1);
  }
};

}  // namespace spoor::scanner
