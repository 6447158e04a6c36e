// scan.db: the results of the scans of this node, and the state from which the next scan continues.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Transaction.h>

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
#include "scanner/store/change_log.h"
#include "scanner/store/directory_row.h"
#include "scanner/store/directory_store.h"
#include "scanner/store/file_store.h"
#include "scanner/store/history_store.h"
#include "scanner/store/link_store.h"
#include "scanner/store/owner_sums.h"
#include "scanner/store/scan_record.h"
#include "tracker/cycles/peer_book.h"

namespace spoor::scanner {

struct StoredDrive {
  std::int64_t id = 0;
  std::string path;
};

// Keys of the settings in the database.
inline constexpr const char* start_level_key = "start_level";
inline constexpr const char* own_marks_key = "own_marks";
inline constexpr const char* rebuilt_key = "rebuilt_because";  // the reason given to begin_rebuild()
// Of a scan that has not ended (scanner/walk/unfinished_scan.h).
inline constexpr const char* unfinished_key = "unfinished";
inline constexpr const char* unfinished_input_key = "unfinished_input";
inline constexpr const char* usage_limits_key = "usage_limits";  // scanner/history/usage_limits.h
// Of one drive, removed by forget_drive(): its identity when it was last walked, the last gap of its watch,
// and the progress of its audit (audit.h).
std::string identity_key(std::int64_t drive);
std::string gap_key(std::int64_t drive);
std::string stamp_key(std::int64_t drive);  // DriveStamp::stamp of the last scan
std::string audit_key(std::int64_t drive);

class ScanTransaction;

// Not thread-safe: one for each thread. Other threads and processes may read the file through their own while
// a scan writes: they see the last committed scan. Failures are Errc::database_failed, database_unusable or
// database_damaged, which also writes scan.db.damaged for the next scan (database_files.h).
class UsageDatabase {
 public:
  static std::filesystem::path file_in(const std::filesystem::path& data_dir) {
    return data_dir / base::data_dir::scan_database;
  }

  // Creates the file if it does not exist; its directory must exist. Errc::database_damaged if any process
  // found damage before, or for a database of an older Spoor: call begin_rebuild().
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

  SQLite::Database& handle() { return *database_; }

 private:
  explicit UsageDatabase(std::unique_ptr<SQLite::Database> database);

  std::unique_ptr<SQLite::Database> database_;
};

// All changes of one scan, which commit() makes durable atomically. Without commit(), the end of the object
// or of the process leaves the database unchanged.
//
// Not thread-safe.
class ScanTransaction {
 public:
  // Throws SQLite::Exception; use begin_scan().
  explicit ScanTransaction(SQLite::Database& database);

  // The number of the scan of this transaction.
  std::uint64_t scan_id() const { return scan_id_; }
  const std::string& file() const { return database_.getFilename(); }
  DirectoryStore& directories() { return directories_; }
  ChangeLog& changes() { return changes_; }
  LinkStore& links() { return links_; }

  // Turns the storage of the files of directories on or off; off deletes what is stored. Returns true if it
  // is on now and was off before.
  base::Result<bool> keep_files(bool wanted);
  FileFeed* files() { return files_ ? &*files_ : nullptr; }  // null if they are not stored

  // Turns the history of totals on or off; off deletes what is stored. Returns true if it is on now and was
  // off before.
  base::Result<bool> keep_history(bool wanted);
  HistoryStore* history() { return history_ ? &*history_ : nullptr; }  // null if none is kept

  // Keeps the totals by owner of directories down to this depth; with nothing, deletes what is stored.
  // Returns true if those of some directories are not known: everything is to be walked.
  base::Result<bool> keep_owners(std::optional<std::uint32_t> depth);
  OwnerSums* owners() { return owners_ ? &*owners_ : nullptr; }  // null if they are not kept
  base::Result<> forget_owners_of(std::int64_t drive);

  // Rows all over the tables will be written: they are put in their place, and more pages are kept in memory.
  base::Result<> expect_many_changes();

  // For what else reads within the transaction.
  SQLite::Database& handle() { return database_; }

  // Whether no scan was committed before.
  bool is_first() const { return scan_id_ == 1; }

  base::Result<std::vector<StoredDrive>> drives();  // by path
  base::Result<StoredDrive> add_drive(const std::string& path);

  // Deletes the row of the drive itself; the caller has erased its directories.
  base::Result<> forget_drive(const StoredDrive& drive);

  base::Result<std::optional<std::string>> setting(std::string_view key);
  base::Result<> set_setting(std::string_view key, std::string_view value);
  base::Result<> remove_setting(std::string_view key);

  // Replaces all stored peers.
  base::Result<> set_peers(const tracker::PeerBook& book);

  // Makes all changes so far durable. After a failure, the object is of no more use, and the database is as
  // after the last commit. False if that has to wait for readers: nothing is committed, and nothing lost.
  base::Result<bool> commit_so_far();

  // The same at the end of the scan, whose record it adds: until then, no reader knows the scan.
  base::Result<> commit(const ScanRecord& record);

 private:
  void commit_all();
  void add_record(const ScanRecord& record);
  void forget_old_records();
  void finish_commit(std::uint64_t commits);

  SQLite::Database& database_;
  // Before the statements: SQLite cannot roll back while one is active.
  std::optional<SQLite::Transaction> transaction_;
  const std::uint64_t scan_id_;
  DirectoryStore directories_;
  ChangeLog changes_;
  LinkStore links_;
  std::optional<FileFeed> files_;
  std::optional<HistoryStore> history_;
  std::optional<OwnerSums> owners_;
  std::optional<std::uint32_t> owners_depth_;
  std::uint64_t put_apart_before_ = 0;  // that were counted
};

}  // namespace spoor::scanner
