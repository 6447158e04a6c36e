#pragma once

#include <SQLiteCpp/Database.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "scanner/link_corrections.h"
#include "scanner/linked_files.h"
#include "scanner/sqlite_statement.h"

namespace spoor::scanner {

// Which directories hold which files that have several hard links, and by how much the sums of a subtree
// have to be corrected so that each such file counts once in it, as in du.
//
// A directory's own totals count a file once, with the size found when that directory was read. Of a file,
// all directories that hold it are taken in the order of a walk. Between two that follow each other, it
// counts once too often in the lowest directory above both, and in all above that one: so what is left is
// once in each subtree, as the directories of a subtree follow each other. Where the sizes differ, the one
// that was read last counts.
//
// Work is in proportion to the links that changed, times the directories that hold the same file. Memory is
// bounded, but for the links of the one directory that is replaced. A drive without such files has no rows,
// and costs nothing.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it. Failures are
// Errc::database_failed, unless said otherwise.
class LinkStore {
 public:
  // Directories that hold one file, as many as are sorted in memory.
  static constexpr std::size_t sorted_max = 16'384;

  explicit LinkStore(SQLite::Database& database, std::size_t sorted_in_memory_max = sorted_max);

  // Exactly those that the directory's own totals hold now. `is_new`: it was not read before.
  base::Result<> replace(std::int64_t drive, std::string_view path, const LinkedFiles& files, bool is_new);

  // Those of the directory, and of all below it. Errc::interrupted where a stop was requested.
  base::Result<> erase_below(std::int64_t drive, std::string_view path, const std::stop_token& stop);

  base::Result<> erase_drive(std::int64_t drive);

  // Whether the directory itself holds such a file, as far as is known.
  base::Result<bool> holds_any(std::int64_t drive, std::string_view path);

  // Brings the corrections up to date. Errc::interrupted where a stop was requested.
  base::Result<> settle(const std::stop_token& stop);

  // What is to be subtracted from the sums of the subtree, as of the last settle().
  base::Result<LinkCorrection> correction(std::int64_t drive, std::string_view path);

 private:
  enum class State : std::uint8_t {
    empty,    // no row
    is_new,   // none before this scan: nothing of it is in the corrections yet
    is_known  // rows of earlier scans
  };
  // What a directory holds, and the size of the file that was read last.
  struct Kept {
    LinkedFile file;
    LinkCorrection size;
  };
  struct Holder {
    std::int64_t directory = 0;
    LinkCorrection own;  // as the directory's own totals have it
  };
  // What the directories of one set have above them, so that the next file of the same set is soon done.
  struct Chain {
    std::vector<std::int64_t> directories;
    std::vector<std::pair<LinkCorrection*, std::uint64_t>> shared;  // how often it counts once too often
  };
  enum class Sign : std::uint8_t { add, take_out };

  template <class Action>
  auto guarded_links(std::string_view what, Action&& action);

  State& state_of(std::int64_t drive);
  std::optional<std::int64_t> find_directory(std::int64_t drive, std::string_view key);
  std::int64_t add_directory(std::int64_t drive, std::string_view key);
  void forget_directory(std::int64_t directory);
  const std::string& key_of(std::int64_t directory);

  void replace_links(std::int64_t drive, std::int64_t directory, const LinkedFiles& files);
  std::vector<Kept> kept_in(std::int64_t directory);
  void put(std::int64_t drive, std::int64_t directory, const LinkedFile& file);
  void remove(std::int64_t drive, std::int64_t directory, std::uint64_t inode);
  std::vector<std::int64_t> some_below(std::int64_t drive, std::string_view key);

  // Before the first row of the file is changed in this scan.
  void touch(std::int64_t drive, std::uint64_t inode);
  void account(std::int64_t drive, std::uint64_t inode, Sign sign);
  void account_sorted(std::int64_t drive, const LinkCorrection& size, Sign sign);
  void account_many(std::int64_t drive, std::uint64_t inode, const LinkCorrection& size, Sign sign);
  void make_chain(std::int64_t drive);

  SQLite::Database& database_;
  const std::size_t sorted_in_memory_max_;
  std::map<std::int64_t, State> states_;
  std::vector<Holder> holders_;  // of the file that is dealt with
  Chain chain_;
  std::unordered_map<std::int64_t, std::string> paths_;  // keys of directories that were looked up lately
  std::size_t paths_bytes_ = 0;

  LinkCorrections corrections_;
  SqliteStatement has_any_;
  SqliteStatement find_directory_;
  SqliteStatement find_path_;
  SqliteStatement add_directory_;
  SqliteStatement erase_directory_;
  SqliteStatement directories_below_;
  SqliteStatement kept_in_;
  SqliteStatement put_;
  SqliteStatement remove_;
  SqliteStatement touch_;
  SqliteStatement touch_all_;
  SqliteStatement touched_;
  SqliteStatement forget_touched_;
  SqliteStatement holders_of_;
  SqliteStatement holders_by_path_;
};

}  // namespace spoor::scanner
