// The errors of scanner/ that a caller handles differently from others.
#pragma once

#include <stop_token>
#include <system_error>

#include "base/error.h"

namespace spoor::scanner {

enum class Errc {
  scan_running = 1,    // Another scan of this node holds the lock.
  interrupted,         // A stop was requested: the database is unchanged.
  way_lost,            // A directory above was moved or replaced during the walk.
  database_failed,     // SQLite could not read or write: a full or bad disk, a lock held too long.
  database_unusable,   // Not a scan database, or one of another version of Spoor.
  database_damaged,    // The content of the file is not reliable: it has to be rebuilt.
  consumer_forgotten,  // A consumer of the change feed has no position any more.
};

const std::error_category& scanner_category();
std::error_code make_error_code(Errc code);

// For an operation that ends because a stop was requested; thrown as base::Failure by the other one.
base::Error interrupted_error();
void throw_if_stopped(const std::stop_token& stop);

}  // namespace spoor::scanner

template <>
struct std::is_error_code_enum<spoor::scanner::Errc> : std::true_type {};
