#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "scanner/database/sqlite.h"
#include "scanner/store/directory_row.h"

namespace spoor::scanner {

constexpr std::uint32_t scan_database_id = 0x53504F52;  // its application_id: "SPOR"

// Creates the tables in an empty file, migrates a database of 1.0.0 (which stays one until all is done, and
// is resumed after a kill), or else checks that it is a scan database of this version. Fails with
// Errc::database_unusable if another program or another Spoor wrote it, and leaves it unchanged.
//
// Throws SqliteError if SQLite fails.
base::Result<> prepare_schema(SqliteDatabase& database);

// Whether prepare_schema() would migrate it.
bool is_migratable(SqliteDatabase& database);

// Selects name, instance, cycle, home, standing, silent_ms and run of each peer, also of 1.0.0, as a reader
// finds it before the first scan after an upgrade.
const char* peers_query(SqliteDatabase& database);

inline constexpr const char* next_id_key = "next_directory_id";  // a setting

// Errc::database_unusable: another program wrote the file.
base::Error foreign_error(std::string_view file);

// Only checks. Accepts this version and 1.0.0. An empty file is Errc::database_unusable.
base::Result<> check_schema(SqliteDatabase& database);

// Reads the directories of a scan.db of 1.0.0 until the next scan migrates them: one row for each, by the id
// of its parent and its name. Failures are SqliteError.
//
// Not thread-safe.
class OldDirectories {
 public:
  explicit OldDirectories(SqliteDatabase& database);

  // As those of DirectoryStore.
  std::optional<DirectoryRow> find(std::int64_t parent, std::string_view name);
  std::vector<DirectoryRow> children(std::int64_t parent, const std::optional<std::string>& after,
                                     std::size_t count_max);

 private:
  SqliteStatement find_;
  SqliteStatement children_;
};

}  // namespace spoor::scanner
