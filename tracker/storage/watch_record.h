// The record in `node.data_dir` of what spoor-watch watches: where it may have missed changes, and its
// figures. spoor-watch writes it; a scan and the daemon read it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_system.h"

namespace spoor::tracker {

// A time in which changes on a drive may have been missed: a scan that does not know this gap walks all of
// the drive.
struct DriveGap {
  std::string id = {};  // random; another one for each gap
  std::string reason = {};
  base::WallTime at = {};

  friend bool operator==(const DriveGap&, const DriveGap&) = default;
};

// Since spoor-watch started, but for the sizes at this moment.
struct WatchFigures {
  std::uint64_t events = 0;     // read from the kernel
  std::uint64_t marks = 0;      // acknowledged by the daemon
  std::uint64_t coalesced = 0;  // events whose mark another event of the batch made
  std::uint64_t gaps = 0;
  std::uint64_t queue_bytes_max = 0;  // of events in the kernel's queue, when a batch was read
  std::uint64_t pending_marks = 0;    // not acknowledged yet
  double lag_seconds = 0;             // how long the oldest of them has waited

  friend bool operator==(const WatchFigures&, const WatchFigures&) = default;
};

struct WatchedDrive {
  std::filesystem::path drive = {};
  bool is_wanted = true;   // false: it was to be watched once, and a scan may not know its last gap
  DriveGap gap = {};       // the last one
  std::string error = {};  // why it is not watched; empty: it is
  WatchFigures figures = {};

  friend bool operator==(const WatchedDrive&, const WatchedDrive&) = default;
};

struct WatchRecord {
  base::WallTime written_at = {};
  std::vector<WatchedDrive> drives = {};

  // Null if the drive is not in the record.
  const WatchedDrive* find(const std::filesystem::path& drive) const;

  friend bool operator==(const WatchRecord&, const WatchRecord&) = default;
};

// Returns nullopt if there is no record, and an error if it can't be read.
base::Result<std::optional<WatchRecord>> read_watch_record(base::FileSystem& files,
                                                           const std::filesystem::path& data_dir);

// Durable on success.
base::Result<> write_watch_record(base::FileSystem& files, const std::filesystem::path& data_dir,
                                  const WatchRecord& record);

// The lock of the only spoor-watch that may run on this data directory.
std::filesystem::path watch_lock_file(const std::filesystem::path& data_dir);

}  // namespace spoor::tracker
