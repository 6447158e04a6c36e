// scan.db: what the scans of this node found, and from where the next one goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "scanner/change_log.h"
#include "scanner/directory_row.h"
#include "scanner/directory_store.h"
#include "scanner/file_feed.h"
#include "scanner/link_store.h"
#include "scanner/scan_record.h"
#include "tracker/cursor.h"

namespace SQLite {
class Database;
class Transaction;
}  // namespace SQLite

namespace spoor::scanner {

struct StoredDrive {
  std::int64_t id = 0;
  std::string path;
};

class ScanTransaction;

// Not thread-safe: one for each thread. Others may read the file, through their own, while a scan
// writes: they see the last committed scan. Failures are Errc::database_failed, database_unusable or
// database_damaged; the last is noted for the next scan (database_files.h).
class UsageDatabase {
 public:
  static std::filesystem::path file_in(const std::filesystem::path& data_dir) { return data_dir / "scan.db"; }

  // Creates the file if need be; its directory must exist. What was found damaged before, by whomever, is
  // Errc::database_damaged, and so is a database of an older Spoor: begin_rebuild() is the way out.
  static base::Result<UsageDatabase> open(const std::filesystem::path& file);

  // A database that is to take the place of `file`, and knows why: built beside it, while that is still read,
  // and put in its place once a scan was committed to it. One that was begun before is dropped. The caller
  // holds the scan lock for this and all that follows.
  static base::Result<UsageDatabase> begin_rebuild(const std::filesystem::path& file, std::string_view why);

  // Closes it, puts it in the place of `file`, which is set aside, and opens it there. After a failure,
  // settle_rebuild() tries again.
  static base::Result<UsageDatabase> finish_rebuild(const std::filesystem::path& file, UsageDatabase rebuilt);

  // One that was begun, and whose scan was killed; nothing where there is none. One that was only to be put
  // in place is put there, and one that can't be read is dropped. Before anything else is done with `file`.
  static base::Result<std::optional<UsageDatabase>> settle_rebuild(const std::filesystem::path& file);

  // Gives it up, unless a scan was committed to it; it has to be closed.
  static base::Result<> drop_rebuild(const std::filesystem::path& file);

  // For queries only. Fails with std::errc::no_such_file_or_directory where there is none yet.
  static base::Result<UsageDatabase> open_read_only(const std::filesystem::path& file);

  UsageDatabase(const UsageDatabase&) = delete;
  UsageDatabase& operator=(const UsageDatabase&) = delete;
  UsageDatabase(UsageDatabase&&) noexcept;
  UsageDatabase& operator=(UsageDatabase&&) noexcept;
  ~UsageDatabase();

  // As the last committed scan left them: none before the first.
  base::Result<tracker::Cursors> cursors();

  // The level at which the last committed scan wants the next cycle to open; 0 where there is none that
  // can be.
  base::Result<std::size_t> start_level();

  // What the last committed scan was given as ScanInput::roll_position; empty before the first.
  base::Result<std::string> roll_position();

  // Newest first. A reason of more bytes is cut, and ends with "...".
  base::Result<std::vector<ScanRecord>> scans(std::size_t count_max,
                                              std::size_t reason_bytes_max = std::string::npos);

  // By path.
  base::Result<std::vector<StoredDrive>> drives();

  // Opens the transaction of a scan. Fails where another one is open, in whatever process. The
  // database must outlive it.
  base::Result<std::unique_ptr<ScanTransaction>> begin_scan();

  SQLite::Database& handle() { return *database_; }

 private:
  explicit UsageDatabase(std::unique_ptr<SQLite::Database> database);

  std::unique_ptr<SQLite::Database> database_;
};

// Everything one scan changes, kept all together by commit(), or not at all: without it, with the end
// of the object or of the process, the database is as before.
//
// Not thread-safe.
class ScanTransaction {
 public:
  // Throws SQLite::Exception; begin_scan() is the way in.
  explicit ScanTransaction(SQLite::Database& database);
  ScanTransaction(const ScanTransaction&) = delete;
  ScanTransaction& operator=(const ScanTransaction&) = delete;
  ~ScanTransaction();

  // The number of the scan that this is the transaction of.
  std::uint64_t scan_id() const { return scan_id_; }
  DirectoryStore& directories() { return *directories_; }
  ChangeLog& changes() { return *changes_; }
  LinkStore& links() { return *links_; }

  // Whether the files of directories are kept from now on. What was kept of them is forgotten where they are
  // not. True where they are now and were not before.
  base::Result<bool> keep_files(bool wanted);
  FileFeed* files() { return files_.get(); }  // null where they are not kept

  // Whether no scan was ever committed before.
  bool is_first() const { return scan_id_ == 1; }

  base::Result<std::vector<StoredDrive>> drives();
  base::Result<StoredDrive> add_drive(const std::string& path);

  // The identity the drive had when it was walked last; nothing where that was not known.
  base::Result<std::optional<std::string>> drive_identity(std::int64_t drive);
  base::Result<> set_drive_identity(std::int64_t drive, std::string_view identity);

  // Where its audit stands (scan_audit.h); nothing where none was kept.
  base::Result<std::optional<std::string>> drive_audit(std::int64_t drive);
  base::Result<> set_drive_audit(std::int64_t drive, std::string_view text);

  // The row of the drive itself; its directories are erased before.
  base::Result<> forget_drive(const StoredDrive& drive);

  // What begin_rebuild() was told; empty where there was an end to no other database before.
  base::Result<std::string> rebuilt_because();

  base::Result<std::optional<std::string>> setting(std::string_view key);
  base::Result<> set_setting(std::string_view key, std::string_view value);
  base::Result<> remove_setting(std::string_view key);

  // In the place of all stored ones.
  base::Result<> set_cursors(const tracker::Cursors& cursors);

  base::Result<> set_start_level(std::size_t level);
  base::Result<> set_roll_position(const std::string& position);

  // Adds the record, and makes everything durable. After a failure, everything is as before.
  base::Result<> commit(const ScanRecord& record);

 private:
  void add_record(const ScanRecord& record);
  void forget_old_records();
  void settle_commit(std::uint64_t commits);

  SQLite::Database& database_;
  std::unique_ptr<SQLite::Transaction> transaction_;
  std::uint64_t scan_id_ = 0;
  std::unique_ptr<DirectoryStore> directories_;
  std::unique_ptr<ChangeLog> changes_;
  std::unique_ptr<LinkStore> links_;
  std::unique_ptr<FileFeed> files_;
};

}  // namespace spoor::scanner
