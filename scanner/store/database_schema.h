#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace spoor::scanner {

constexpr std::uint32_t scan_database_id = 0x53504F52;  // its application_id: "SPOR"
constexpr std::uint32_t scan_database_oldest = 4;       // the version of 1.0.0; older ones are built anew

// Creates the tables in an empty file, migrates a database of 1.0.0 (which stays one until all is done, and
// is resumed after a kill), or else checks that it is a scan database of this version. Fails with
// Errc::database_unusable if another program or a newer Spoor wrote it, and leaves it unchanged.
//
// Throws SQLite::Exception if SQLite fails.
base::Result<> prepare_schema(SQLite::Database& database);

// Whether prepare_schema() would migrate it.
bool is_migratable(SQLite::Database& database);

// Selects name, instance, cycle, home, standing, silent_ms and run of each peer, also from an older version,
// as a reader finds it before the first scan after an upgrade.
const char* peers_query(SQLite::Database& database);

// Rows of the table `settings`. All throw SQLite::Exception.
inline constexpr const char* next_id_key = "next_directory_id";
std::int64_t number_setting(SQLite::Database& database, const char* key, std::int64_t otherwise);
void put_setting(SQLite::Database& database, std::string_view key, std::string_view value);
void erase_setting(SQLite::Database& database, std::string_view key);

// Errc::database_unusable: another program wrote the file.
base::Error foreign_error(std::string_view file);

// Only checks. Accepts this version and those that prepare_schema() migrates: readers find the columns and
// tables that are there. An empty file is Errc::database_unusable.
base::Result<> check_schema(SQLite::Database& database);

}  // namespace spoor::scanner
