// The drives of a scan, in the spelling of the database and with what is stored of them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "scanner/walk/scan_input.h"
#include "scanner/walk/walk_context.h"

namespace spoor::scanner {

// A drive of the scan, and its id in the database.
struct KnownDrive {
  Drive drive;
  std::int64_t id = 0;
};

// Gives each path its one spelling: "/mnt/a/" and "/mnt/./a" become "/mnt/a". Refuses drives that overlap
// with another one. Fails with std::errc::invalid_argument if a path is relative, or a drive is listed twice.
base::Result<> check_drives(std::vector<Drive>& drives);

// Brings the drives of the database in line with those of the scan: adds new ones, removes those that are not
// listed, and empties those that are now another drive, or refused because they overlap. The root of a drive
// with a new gap counts as unread. Fails where the database does, or with Errc::interrupted.
base::Result<std::vector<KnownDrive>> match_drives(WalkContext& context);

// Removes all that is stored of a drive, counts its directories as deleted, and resets the change feed.
base::Result<> empty_drive(WalkContext& context, std::int64_t drive);

}  // namespace spoor::scanner
