// scan.db: the results of the scans of this node, and the state from which the next scan continues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/data_dir.h"
#include "base/error.h"
#include "scanner/database/sqlite.h"
#include "scanner/store/scan_record.h"
#include "scanner/store/scan_transaction.h"
#include "tracker/cycles/peer_book.h"

namespace spoor::scanner {

// Not thread-safe: one for each thread. Other threads and processes may read the file through their own while
// a scan writes: they see the last committed scan. Failures are Errc::database_failed, database_unusable or
// database_damaged, which also writes scan.db.damaged for the next scan (database_files.h).
class UsageDatabase {
 public:
  static std::filesystem::path file_in(const std::filesystem::path& data_dir) {
    return data_dir / base::data_dir::scan_database;
  }

  // Creates the file if it does not exist; its directory must exist. Errc::database_damaged if any process
  // found damage before: call begin_rebuild().
  static base::Result<UsageDatabase> open(const std::filesystem::path& file);

  // Creates a database that will replace `file`, and stores the reason `why` in it. It is built beside
  // `file`, which stays readable, and replaces it after a scan was committed to it. Drops one that was begun
  // before. The caller holds the scan lock for this and the functions below.
  static base::Result<UsageDatabase> begin_rebuild(const std::filesystem::path& file, std::string_view why);

  // Closes `rebuilt`, sets `file` aside, moves `rebuilt` to its place and opens it there. After a failure,
  // resume_rebuild() retries.
  static base::Result<UsageDatabase> finish_rebuild(const std::filesystem::path& file, UsageDatabase rebuilt);

  // Returns the database of a rebuild whose scan was killed; nothing if there is none. Finishes a rebuild to
  // which a scan was committed, and drops one that cannot be read. Call before `file` is used otherwise.
  static base::Result<std::optional<UsageDatabase>> resume_rebuild(const std::filesystem::path& file);

  // Drops a rebuild, unless a scan was committed to it. Its database must be closed.
  static base::Result<> drop_rebuild(const std::filesystem::path& file);

  // For queries only. Fails with std::errc::no_such_file_or_directory if no scan was made yet.
  static base::Result<UsageDatabase> open_read_only(const std::filesystem::path& file);

  // As stored by the last committed scan; empty before the first.
  base::Result<tracker::PeerBook> peers();

  // The level that the last committed scan requests for the next cycle; 0 if none is stored or it is invalid.
  base::Result<std::size_t> start_level();
  // ScanOptions::own_marks_of of the last scan.
  base::Result<std::string> own_marks_of();
  base::Result<std::optional<std::string>> setting(std::string_view key);
  // Durably, between two scans. By the holder of the scan lock.
  base::Result<> replace_setting(std::string_view key, std::string_view value);

  // Newest first. A reason longer than `reason_bytes_max` is cut there, and "..." is appended.
  base::Result<std::vector<ScanRecord>> scans(std::size_t count_max,
                                              std::size_t reason_bytes_max = std::string::npos);

  // Nothing if the record of this scan is not kept.
  base::Result<std::optional<ScanRecord>> scan(std::uint64_t id);

  // Opens the transaction of a scan. Fails if another one is open, in this or another process. The database
  // must outlive it.
  base::Result<std::unique_ptr<ScanTransaction>> begin_scan();

  // Merges the rows that scans have put apart (directory_store.h), once they have put so many. After the
  // report of a scan, by the holder of the scan lock; a failure leaves all as it is, to the next scan.
  base::Result<> merge_rows(std::uint64_t put_apart_min = 64'000);  // of about 50 bytes

  // Writes the log into the file and frees its space, as far as readers let it; a commit does that once the
  // log has 1 MiB. To be called after a transaction that failed, too.
  void empty_log();

  SqliteDatabase& handle() { return *database_; }

 private:
  explicit UsageDatabase(std::unique_ptr<SqliteDatabase> database);

  std::unique_ptr<SqliteDatabase> database_;
};

}  // namespace spoor::scanner
