#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scanner/database/sqlite.h"
#include "scanner/store/files.h"
#include "scanner/store/link_corrections.h"
#include "scanner/store/owner_sums.h"

namespace spoor::scanner {

// Which directories hold which files that have several hard links, and by how much the sums of a subtree
// have to be corrected so that each such file counts once in it, as in du.
//
// A directory's own totals count a file once, with the size found when that directory was read. The
// directories that hold a file are sorted in the order of a walk. For each two neighbours, the file counts
// once too often in their lowest common ancestor and in all directories above that. The directories of a
// subtree are neighbours in this order, so after the correction the file counts once in each subtree. If the
// sizes differ, the one that was read last counts.
//
// The work is proportional to the changed links, times the directories that hold the same file. Memory is
// bounded, except for the links of the one directory that is replaced. A drive without such files has no
// rows, and costs nothing.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it. Failures are
// SqliteError, and Errc::interrupted as base::Failure after a stop was requested.
class LinkStore {
 public:
  // At most this many directories that hold one file are sorted in memory; more are sorted by SQLite.
  static constexpr std::size_t sorted_max = 16'384;

  explicit LinkStore(SqliteDatabase& database, std::size_t sorted_in_memory_max = sorted_max);

  // Replaces the links of a directory by exactly those in its own totals. `is_new`: it was not read before.
  void replace(std::int64_t drive, std::string_view path, const LinkedFiles& files, bool is_new);

  // Removes the links of the directory and of all below it.
  void erase_below(std::int64_t drive, std::string_view path, const std::stop_token& stop);

  void erase_drive(std::int64_t drive);

  // Whether a link is stored for the directory itself.
  bool holds_any(std::int64_t drive, std::string_view path);

  // Updates the corrections. Before the end of a scan, those of a drive without rows before it are left: each
  // further name of a file would cost all former ones.
  enum class At { end, commit };
  void apply_corrections(const std::stop_token& stop, At at = At::end);

  // Is called for the path of each directory, of any drive, whose correction changes.
  void on_change(std::function<void(std::string_view path)> on_change);

  // Corrects the totals by owner, too, which must outlive it: a file counts once in each subtree, for the
  // owner that was read last.
  void keep_owners(OwnerSums& owners) { owners_ = &owners; }

  // What to subtract from the sums of the subtree, as of the last apply_corrections().
  LinkCorrection correction(std::int64_t drive, std::string_view path) {
    return corrections_.find(drive, walk_key(path));
  }

 private:
  enum class State : std::uint8_t {
    empty,    // no row
    is_new,   // no row before this scan: the corrections contain nothing of it until the end
    is_known  // rows of earlier scans
  };
  // A link in a directory, and the size of the file as it was read last.
  struct Kept {
    LinkedFile file;
    LinkedFile last;
  };
  // A size, and whose file it was; nothing if that is not known.
  struct OwnedSize {
    LinkCorrection size;
    std::optional<Owner> owner;

    friend bool operator==(const OwnedSize&, const OwnedSize&) = default;
  };
  struct Holder {
    std::int64_t directory = 0;
    OwnedSize own;  // as in the directory's own totals
  };
  // The common ancestors of a set of directories, cached for the next file with the same set.
  struct Chain {
    struct Shared {
      LinkCorrection* above = nullptr;
      std::string key;
      std::uint64_t count = 0;  // how many times too often a file counts
    };
    std::vector<std::int64_t> directories;
    std::vector<Shared> shared;
  };
  enum class Sign : std::uint8_t { add, take_out };

  static OwnedSize read_owned(const SqliteStatement& row);
  static OwnedSize with_sign(OwnedSize owned, Sign sign);
  State& state_of(std::int64_t drive);
  bool is_new(std::int64_t drive);
  void begin_or_leave_new(At at);
  std::optional<std::int64_t> find_directory(std::int64_t drive, std::string_view key);
  std::int64_t add_directory(std::int64_t drive, std::string_view key);
  void forget_directory(std::int64_t directory);
  const std::string& key_of(std::int64_t directory);

  void replace_links(std::int64_t drive, std::int64_t directory, const LinkedFiles& files);
  std::vector<Kept> kept_in(std::int64_t directory);
  void put(std::int64_t drive, std::int64_t directory, const LinkedFile& file);
  void remove(std::int64_t drive, std::int64_t directory, std::uint64_t inode);
  std::vector<std::int64_t> some_below(std::int64_t drive, std::string_view key);

  // Call before a row of the file is changed.
  void touch(std::int64_t drive, std::uint64_t inode);
  void account(std::int64_t drive, std::uint64_t inode, Sign sign);
  void account_sorted(std::int64_t drive, const OwnedSize& last, Sign sign);
  void account_many(std::int64_t drive, std::uint64_t inode, const OwnedSize& last, Sign sign);
  void account_own(std::int64_t drive, std::string_view key, const OwnedSize& own, const OwnedSize& last);
  void correct_owner(std::int64_t drive, std::string_view key, const OwnedSize& excess, std::uint64_t count);
  void make_chain(std::int64_t drive);

  SqliteDatabase& database_;
  const std::size_t sorted_in_memory_max_;
  std::map<std::int64_t, State> states_;
  std::vector<Holder> holders_;  // of the current file
  Chain chain_;
  std::unordered_map<std::int64_t, std::string> paths_;  // cached keys of directories
  std::size_t paths_bytes_ = 0;

  OwnerSums* owners_ = nullptr;  // null: they are not kept
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
  SqliteStatement new_;
  SqliteStatement forget_new_;
  SqliteStatement holders_of_;
  SqliteStatement holders_by_path_;
};

}  // namespace spoor::scanner
