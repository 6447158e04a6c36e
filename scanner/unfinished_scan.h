// A scan that may be killed before it is committed, so that the next one goes on with it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_system.h"
#include "tracker/cursor.h"
#include "tracker/ids.h"
#include "tracker/mark_set.h"

namespace spoor::scanner {

// All that decides what a scan walks: fixed when it begins, and taken up again by the one that goes on.
struct ScanInput {
  tracker::MarkSet marks;
  // From where to read on next time, for every peer known: those that were heard moved on, the others
  // as they were. One that is missing here has no cursor afterwards.
  tracker::Cursors next_cursors = {};
  // The level at which the next cycle is to open; 0 is no opinion.
  std::size_t start_level = 0;
  // Up to where the roll of members is known (peer/roll_position.h).
  std::string roll_position = {};
  // When gathering began: changes from then on are not promised to be seen.
  base::WallTime started_at = {};
  tracker::CycleId cycle = {};
  bool partial = false;         // some peer was not heard
  std::string everything = {};  // why everything must be walked; empty where it need not
};

// What has to be the same for a scan to be gone on with: else it is begun anew.
struct ScanSetting {
  std::string database;  // its id
  std::uint64_t scan = 0;
  std::string rules;
  std::vector<std::string> drives;
  bool file_feed = false;

  friend bool operator==(const ScanSetting&, const ScanSetting&) = default;
};

// A directory of files. Nothing is lost with it but what was read: it may be removed at any time but during
// a scan. Written from the first word of a log on, so that a small scan leaves no trace.
//
// Not thread-safe; whoever has it holds the scan lock.
class UnfinishedScan {
 public:
  static std::filesystem::path directory_in(const std::filesystem::path& data_dir) {
    return data_dir / "unfinished";
  }

  // None is there. `files` must outlive it.
  UnfinishedScan(std::filesystem::path directory, base::FileSystem& files);

  // What a scan left that was killed; nothing where there is none, or where it was of another setting. Where
  // it was a full one, all is walked by this input; but that drives are to be taken as they are, nobody asked
  // for again.
  std::optional<ScanInput> find(const ScanSetting& setting);

  // Whether find() found one.
  bool goes_on() const { return is_written_; }

  // Writes it down before any log does: it is gone on with from here on.
  base::Result<> keep();

  // Begins the scan of that input, which must outlive this, unless find() found one: that goes on.
  void begin(const ScanSetting& setting, const ScanInput& input, bool full);

  // Removes all, as far as that can be done, and the directory: another user makes its own. What stays is not
  // taken for a scan that ended.
  void remove();

  // The files of a log, oldest first; none where the scan does not go on with another.
  std::vector<std::string> log_files(const std::string& log) const;

  // A new file of the log, behind all it has. Writes down the scan itself before the first.
  base::Result<std::unique_ptr<base::OutputFile>> add_log_file(const std::string& log);

  const std::filesystem::path& directory() const { return directory_; }
  // Stands in each file of the scan.
  std::uint64_t token() const { return token_; }

 private:
  base::Result<> write_down();

  const std::filesystem::path directory_;
  base::FileSystem& files_;
  ScanSetting setting_;
  const ScanInput* input_ = nullptr;
  bool full_ = false;
  std::uint64_t token_ = 0;
  bool is_written_ = false;
};

}  // namespace spoor::scanner
