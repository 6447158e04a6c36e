#pragma once

#include <SQLiteCpp/Database.h>

#include "base/error.h"

namespace spoor::scanner {

// Makes the database ready: creates the tables in an empty file, else checks that it is a scan
// database of this version. Fails with Errc::database_unusable where it is another program's or a
// newer Spoor's, and leaves it as it is.
//
// Throws SQLite::Exception where SQLite fails.
base::Result<> prepare_schema(SQLite::Database& database);

// Only checks; an empty file is not a scan database.
base::Result<> check_schema(SQLite::Database& database);

}  // namespace spoor::scanner
