#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>

#include "base/error.h"

namespace spoor::scanner {

constexpr std::uint32_t scan_database_id = 0x53504F52;  // its application_id: "SPOR"

// Makes the database ready: creates the tables in an empty file, adds those that the version before did not
// have, else checks that it is a scan database of this version. Fails with Errc::database_unusable where it
// is another program's or a newer Spoor's, and leaves it as it is.
//
// Throws SQLite::Exception where SQLite fails.
base::Result<> prepare_schema(SQLite::Database& database);

// Only checks; an empty file is not a scan database, and the version before is one.
base::Result<> check_schema(SQLite::Database& database);

}  // namespace spoor::scanner
