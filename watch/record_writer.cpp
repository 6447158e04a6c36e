#include "watch/record_writer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "tracker/cycles/ids.h"

namespace spoor::watch {

RecordWriter::RecordWriter(base::FileSystem& files, const base::Clock& clock, std::filesystem::path data_dir,
                           const std::vector<std::filesystem::path>& drives)
    : files_(files), clock_(clock), data_dir_(std::move(data_dir)) {
  auto read = tracker::read_watch_record(files_, data_dir_);
  if (!read) spdlog::warn("{}", read.error().message);
  if (read && *read) record_.drives = std::move((*read)->drives);
  for (tracker::WatchedDrive& former : record_.drives) former = {former.drive, false, former.gap, {}, {}};
  for (const std::filesystem::path& drive : drives) {
    if (record_.find(drive) == nullptr) record_.drives.emplace_back().drive = drive;
    at(drive).is_wanted = true;
  }
}

std::string RecordWriter::gap_id(const std::filesystem::path& drive) const {
  const std::scoped_lock lock(mutex_);
  const auto* found = record_.find(drive);
  return found == nullptr ? std::string() : found->gap.id;
}

base::Result<std::string> RecordWriter::add_gap(const std::filesystem::path& drive,
                                                const std::string& reason) {
  const std::scoped_lock writing(write_mutex_);
  std::unique_lock lock(mutex_);
  const tracker::DriveGap before = at(drive).gap;
  const tracker::DriveGap gap = {tracker::InstanceId::random().to_string(), reason, clock_.wall_now()};
  at(drive).gap = gap;
  lock.unlock();
  auto written = write_record();
  if (written) return gap.id;
  lock.lock();
  at(drive).gap = before;
  return written.error();
}

void RecordWriter::set(const std::filesystem::path& drive, const std::string& error,
                       const tracker::WatchFigures& figures) {
  const std::scoped_lock lock(mutex_);
  at(drive).error = error;
  at(drive).figures = figures;
}

base::Result<> RecordWriter::write() {
  const std::scoped_lock writing(write_mutex_);
  return write_record();
}

tracker::WatchedDrive& RecordWriter::at(const std::filesystem::path& drive) {
  return *std::ranges::find(record_.drives, drive, &tracker::WatchedDrive::drive);
}

// The caller holds the lock for writing only: a disk that hangs must not stop those that call set().
base::Result<> RecordWriter::write_record() {
  std::unique_lock lock(mutex_);
  record_.written_at = clock_.wall_now();
  const tracker::WatchRecord record = record_;
  lock.unlock();
  return tracker::write_watch_record(files_, data_dir_, record);
}

}  // namespace spoor::watch
