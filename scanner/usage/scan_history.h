#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "scanner/history/history_options.h"
#include "scanner/history/history_store.h"
#include "scanner/store/usage_database.h"
#include "scanner/usage/directory_totals.h"

namespace spoor::scanner {

// What is kept after a scan.
struct HistoryReport {
  bool is_kept = false;
  std::uint64_t paths = 0;
  std::uint64_t points = 0;
  // Directories that got no history, because `paths` or `points` is at its bound. Of the last scan that
  // looked at all directories, and of those since.
  std::uint64_t refused = 0;
  // The clock is behind former scans: nothing was recorded.
  bool clock_is_behind = false;
};

// Records the totals of one scan: a point for each directory of HistoryOptions whose totals changed.
//
// A directory that was deleted gets a point of zeros. If another directory has its name, its point says so.
// If a directory appears that has the identity of one that is gone since this scan, it was renamed: the
// history moves with it, and that of all below it. File systems without times of creation or generations have
// no such identity.
//
// If more scans started over a day after this one than scans were made since, the clock is taken to be wrong,
// and nothing is recorded: the points since then would be lost. Otherwise those scans had a wrong clock.
//
// At a bound, the history of the directory that was deleted first makes room. If there is none, a new
// directory gets no history, and a known one keeps fewer of its older points.
//
// Only looks at the touched directories, and at all where these are not known: when the history begins or its
// settings changed, after scans of a Spoor without history, and after a rebuild of the database. That one may
// be of less than the history: nothing is deleted before a scan could read everything.
//
// Not thread-safe. All references must outlive it.
class ScanHistory {
 public:
  // So many directories that are gone may be found under another name.
  static constexpr std::size_t renames_max = 100'000;

  ScanHistory(ScanTransaction& transaction, const HistoryOptions& options, const TouchedPaths& touched,
              std::stop_token stop);

  // After the walk and LinkStore::apply_corrections(), before the commit. `started_at` is the time of the
  // points. Throws SqliteError, or Errc::interrupted as base::Failure.
  HistoryReport record(base::WallTime started_at);

 private:
  // A directory with a history that no longer exists under its name.
  struct Gone {
    std::string path;
    HistoryRow row;
  };
  // Which directories are looked at.
  enum class Scope { touched, all, all_are_new };

  bool clock_is_behind(base::WallTime started_at);
  std::uint64_t points_after(std::int64_t at);
  void begin(bool is_new);
  KnownDirectories read_known();
  void finish();

  void record_touched();
  void record_all();
  void record_gone();
  void find_gone(const std::string& path);
  void for_each_below(const std::string& path, std::int64_t id,
                      const std::function<void(const std::string&, HistoryRow)>& visit);
  void look_for_gone(const std::string& path, HistoryRow row);
  void add_gone(const std::string& path, HistoryRow row);
  void erase_or_hollow(const std::string& path, HistoryRow row);

  void record(const DirectoryTotal& total);
  void record_known(HistoryRow row, const DirectoryTotal& total);
  void record_appeared(std::optional<HistoryRow> row, const DirectoryTotal& total);
  bool move_to(const DirectoryTotal& total, const std::optional<HistoryRow>& there);
  std::string path_after_moves(const std::string& path) const;
  bool may_have_been_unread(std::string_view path);
  HistoryPoint point_of(const DirectoryTotal& total, HistoryEvent event = HistoryEvent::none) const;

  std::optional<HistoryRow> find(std::string_view path);
  std::optional<std::int64_t> id_of(std::string_view path);
  std::int64_t make_parent(std::string_view path);
  void remember(std::string_view path, std::int64_t id);
  void put(HistoryRow& row, HistoryPoint point);
  void erase(std::int64_t id);
  bool has_room(std::uint64_t paths, std::uint64_t points);

  ScanTransaction& transaction_;
  SqliteDatabase& database_;
  const HistoryOptions& options_;
  const TouchedPaths& touched_;
  const std::stop_token stop_;
  HistoryReport report_;
  std::int64_t at_ = 0;
  Scope scope_ = Scope::touched;
  bool is_copied_ = false;          // from another database, and no scan has compared all of it
  bool knows_what_is_gone_ = true;  // what is not found exists no longer
  HistoryStore* store_ = nullptr;
  std::optional<DirectoryTotals> totals_;
  std::set<std::string> to_record_;
  std::map<std::int64_t, Gone> gone_;  // by the id of the row
  std::map<HistoryIdentity, std::int64_t> gone_by_identity_;
  bool too_many_gone_ = false;
  std::map<std::string, std::string, std::less<>> moves_;  // to the new path
  std::unordered_map<std::string, std::int64_t> ids_;      // cached, by path
  // Rows of directories that were not complete before this scan, and whether they were unread.
  std::unordered_map<std::int64_t, bool> were_incomplete_;
};

}  // namespace spoor::scanner
