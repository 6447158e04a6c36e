// What can go wrong in scanner/, as far as some caller reacts to it.
#pragma once

#include <system_error>

#include "base/error.h"

namespace spoor::scanner {

enum class Errc {
  scan_running = 1,   // Another scan of this node holds the lock.
  interrupted,        // The scan was asked to stop: the database is as before.
  database_failed,    // SQLite could not read or write: a full disk, a bad one, a lock held too long.
  database_unusable,  // A file that is no scan database, or one of another version of Spoor.
  database_damaged,   // What is in the file can't be trusted: it has to be built anew.
};

const std::error_category& scanner_category();
std::error_code make_error_code(Errc code);

// Of whatever ends because a stop was requested.
base::Error interrupted_error();

}  // namespace spoor::scanner

template <>
struct std::is_error_code_enum<spoor::scanner::Errc> : std::true_type {};
