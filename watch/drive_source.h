// Drives that are watched by fanotify.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "watch/event_source.h"
#include "watch/fanotify_group.h"

namespace spoor::watch {

struct DriveSourceOptions {
  std::filesystem::path drive;
  std::filesystem::path data_dir;  // not marked, if it lies on the drive
  std::size_t cache_bytes_max = std::size_t{4} << 20U;
};

// Begins to watch the drive. Opens the handles of directories below it (open_by_handle_at(2)), whether or not
// a mount hides them, which needs CAP_DAC_READ_SEARCH. Fails, with advice, if it cannot be watched.
base::Result<std::unique_ptr<EventSource>> open_drive(const DriveSourceOptions& options);

// Why the drive cannot be watched; nothing is watched then or otherwise.
base::Result<> check_drive(const DriveSourceOptions& options);

// Continues a group of an earlier process, if that missed nothing: the drive is the same, and was watched
// ever since. Null if it may have missed something; `kept` is used up.
std::unique_ptr<EventSource> resume_drive(const DriveSourceOptions& options, FanotifyGroup kept);

}  // namespace spoor::watch
