#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "scanner/walker.h"

namespace spoor::scanner {

struct Drive {
  std::filesystem::path path;
  // Why it must not be walked this time, as a sentence to be shown; empty where it may be. For a
  // caller that knows that it is not the drive it should be.
  std::string refused;
  // The identity it carries; empty where that is not known. Another one than at the last scan is another
  // drive: what is stored of it is forgotten, and all of it walked.
  std::string identity = {};
};

// A drive that could not be walked: its totals stay as they were, and all of it is walked once it can
// be, since by then the marks are used up.
struct FailedDrive {
  std::filesystem::path path;
  std::string message;
};

// Walks one drive from its root, as far as the plan asks. `id` is its id in the database. Returns how
// the drive failed as a whole, if it did. Fails where the database does, or with Errc::interrupted.
//
// An empty directory in the place of a drive that held something looks like a drive that is not
// mounted, and is a failed one, unless `take_as_is`.
base::Result<std::optional<FailedDrive>> walk_drive(WalkContext& context, const Drive& drive, std::int64_t id,
                                                    bool take_as_is);

}  // namespace spoor::scanner
