#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "tracker/storage/watch_record.h"
#include "watch/drive_watch.h"

namespace spoor::watch {

// Owns the record of what is watched (tracker/storage/watch_record.h).
//
// Thread-safe.
class RecordWriter final : public GapSink {
 public:
  // `drives` are those that are watched from now on. Of others, the last gap is kept. A record that cannot be
  // read counts as none: each drive then has a new gap. `files` and `clock` must outlive it.
  RecordWriter(base::FileSystem& files, const base::Clock& clock, std::filesystem::path data_dir,
               const std::vector<std::filesystem::path>& drives);

  // The id of the drive's last gap; empty if there is none.
  std::string gap_id(const std::filesystem::path& drive) const;

  base::Result<std::string> add_gap(const std::filesystem::path& drive, const std::string& reason) override;

  // Sets what the next write() writes.
  void set(const std::filesystem::path& drive, const std::string& error,
           const tracker::WatchFigures& figures);
  base::Result<> write();

 private:
  tracker::WatchedDrive& at(const std::filesystem::path& drive);
  base::Result<> write_record();

  base::FileSystem& files_;
  const base::Clock& clock_;
  const std::filesystem::path data_dir_;
  std::mutex write_mutex_;    // acquired before the other one
  mutable std::mutex mutex_;  // of the record
  tracker::WatchRecord record_;
};

}  // namespace spoor::watch
