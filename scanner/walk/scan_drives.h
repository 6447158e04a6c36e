// The drives of a scan, in the spelling of the database and with what is stored of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "scanner/store/usage_database.h"
#include "scanner/walk/scan_input.h"

namespace spoor::scanner {

// A drive of the scan, and its id in the database.
struct KnownDrive {
  Drive drive;
  std::int64_t id = 0;
};

// A drive that could not be walked: its totals stay as they were, and all of it is walked once it can be,
// since by then the marks are used up.
struct FailedDrive {
  std::filesystem::path path;
  std::string message;
};

// Gives each path its one spelling: "/mnt/a/" and "/mnt/./a" become "/mnt/a". Refuses drives that overlap
// with another one. Fails with std::errc::invalid_argument if a path is relative, or a drive is listed twice.
base::Result<> check_drives(std::vector<Drive>& drives);

struct MatchedDrives {
  std::vector<KnownDrive> drives;
  std::uint64_t dirs_deleted = 0;  // stored directories of drives that others took the place of
};

// Brings the drives of the database in line with those of the scan: adds new ones, removes those that are not
// listed, and empties those that are now another drive, or refused because they overlap. Fails where the
// database does, or with Errc::interrupted.
base::Result<MatchedDrives> match_drives(ScanTransaction& transaction, const std::vector<Drive>& drives,
                                         const std::stop_token& stop);

// Removes all that is stored of a drive, and resets the change feed. Returns how many directories that were.
base::Result<std::uint64_t> erase_drive(ScanTransaction& transaction, std::int64_t drive,
                                        const std::stop_token& stop);

}  // namespace spoor::scanner
