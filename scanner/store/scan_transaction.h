// The transaction of one scan, and what each commit to scan.db counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scanner/database/database_files.h"
#include "scanner/database/sqlite.h"
#include "scanner/history/history_store.h"
#include "scanner/store/change_log.h"
#include "scanner/store/directory_store.h"
#include "scanner/store/file_store.h"
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
inline constexpr const char* usage_limits_key = "usage_limits";  // scanner/usage/usage_limits.h
// Of one drive, removed by forget_drive(): its identity when it was last walked, the last gap of its watch,
// and the progress of its audit (audit.h).
std::string identity_key(std::int64_t drive);
std::string gap_key(std::int64_t drive);
std::string stamp_key(std::int64_t drive);  // DriveStamp::stamp of the last scan
std::string audit_key(std::int64_t drive);

// All changes of one scan, which commit() makes durable atomically. Without commit(), the end of the object
// or of the process leaves the database unchanged. Failures are SqliteError.
//
// Not thread-safe.
class ScanTransaction {
 public:
  // Use UsageDatabase::begin_scan().
  explicit ScanTransaction(SqliteDatabase& database);

  // The number of the scan of this transaction.
  std::uint64_t scan_id() const { return scan_id_; }
  const std::string& file() const { return database_.file(); }
  DirectoryStore& directories() { return directories_; }
  ChangeLog& changes() { return changes_; }
  LinkStore& links() { return links_; }

  // Turns the storage of the files of directories on or off; off deletes what is stored. Returns true if it
  // is on now and was off before.
  bool keep_files(bool wanted);
  FileFeed* files() { return files_ ? &*files_ : nullptr; }  // null if they are not stored

  // Turns the history of totals on or off; off deletes what is stored. Returns true if it is on now and was
  // off before.
  bool keep_history(bool wanted);
  HistoryStore* history() { return history_ ? &*history_ : nullptr; }  // null if none is kept

  // Keeps the totals by owner of directories down to this depth; with nothing, deletes what is stored.
  // Returns true if those of some directories are not known: everything is to be walked.
  bool keep_owners(std::optional<std::uint32_t> depth);
  OwnerSums* owners() { return owners_ ? &*owners_ : nullptr; }  // null if they are not kept

  // Rows all over the tables will be written: they are put in their place, and more pages are kept in memory.
  void expect_many_changes();

  // For what else reads within the transaction.
  SqliteDatabase& handle() { return database_; }

  // Whether no scan was committed before.
  bool is_first() const { return scan_id_ == 1; }

  std::vector<StoredDrive> drives();  // by path
  StoredDrive add_drive(const std::string& path);

  // Deletes the row of the drive itself; the caller has erased its directories.
  void forget_drive(const StoredDrive& drive);

  std::optional<std::string> setting(std::string_view key) { return find_setting(database_, key); }
  void set_setting(std::string_view key, std::string_view value) { put_setting(database_, key, value); }
  void remove_setting(std::string_view key) { erase_setting(database_, key); }

  // Replaces all stored peers.
  void set_peers(const tracker::PeerBook& book);

  // Makes all changes so far durable. After a failure, the object is of no more use, and the database is as
  // after the last commit. False if that has to wait for readers: nothing is committed, and nothing lost.
  bool commit_so_far();

  // The same at the end of the scan, whose record it adds: until then, no reader knows the scan.
  void commit(const ScanRecord& record);

 private:
  void commit_all();
  void add_record(const ScanRecord& record);
  void forget_old_records();
  void finish_commit(std::uint64_t commits);

  SqliteDatabase& database_;
  // Before the statements: SQLite cannot roll back while one is active.
  std::optional<SqliteTransaction> transaction_;
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

inline constexpr const char* put_apart_key = "put_apart";  // number of rows that merge_rows() is to merge

// All throw SqliteError.

// `mark` must be read before the database: it may be older than the database, but not newer.
void check_commits(SqliteDatabase& database, const std::optional<CommitMark>& mark);
// In each transaction that writes, before its commit.
void count_commit(SqliteDatabase& database);
// As far as readers let it.
void write_back_log(SqliteDatabase& database);

}  // namespace spoor::scanner
