// The journal: the marks since the last durable snapshot, in `<data_dir>/journal`.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/data_dir.h"
#include "base/error.h"
#include "base/file_system.h"
#include "tracker/storage/journal_segment.h"

namespace spoor::tracker {

// One file of the journal.
struct LoadedSegment {
  std::string file_name;
  JournalPosition start = 0;  // from the file name
  std::unique_ptr<const std::string> bytes;
  // nullopt if the file can't be used; `error` has the reason.
  std::optional<SegmentHeader> header;
  SegmentFrames frames;     // they view `bytes`
  bool had_frames = false;  // of a file without a valid header: it may have held frames
  std::string error;
};

struct LoadedJournal {
  std::vector<LoadedSegment> segments;  // by start
  std::string error;                    // why the files could not be listed
};

// Reads the files of `instance`'s journal. Changes nothing on disk.
LoadedJournal load_journal(base::FileSystem& files, const std::filesystem::path& data_dir,
                           const NodeIdentity& owner, const InstanceId& instance);

// The journal that is being written: a list of segments; records are appended to the last one.
//
// Thread-safe. After a failed write append() fails until begin() opens a new segment, since it is not known
// what a failed sync left on the disk.
class Journal {
 public:
  // With `sync`, append() returns only when the records survive a power cut. `files` must outlive the
  // journal.
  Journal(base::FileSystem& files, std::filesystem::path data_dir, bool sync)
      : files_(files), data_dir_(std::move(data_dir)), sync_(sync) {}

  // Takes over the segments of the instance's last run, so that cut() removes them. To be called before
  // begin().
  void adopt(const LoadedJournal& loaded);

  // Makes the adopted segments durable: after a process was killed, a power cut can still lose its last
  // writes.
  base::Result<> sync_adopted();

  // Removes the segment that begin() opened, since the start has failed.
  void abandon();

  // Opens a new segment, durable on success. Older segments stay until cut() removes them.
  base::Result<> begin(const SegmentHeader& header);

  // Appends the records as one frame. With `sync`, zeros are written behind the last frame from time to time:
  // the sync of a frame that overwrites them writes no metadata of the file system.
  base::Result<> append(std::string_view records);

  // Opens a new segment after the last record, so that a snapshot of all records before it frees the others.
  base::Result<> rotate();

  // Removes the files, except the last, that hold no records after `position`. The next cut retries a file
  // that can't be removed; a replay of it is harmless.
  void cut(JournalPosition position);

  // Removes the journal files in the directory that are no segment of this journal. A damaged file, or one of
  // an unknown version, is kept as `<data_dir>/journal/aside.corrupt` or `aside.v3`, the last of each.
  // Returns a sentence for each file that was kept or could not be removed.
  std::vector<std::string> remove_leftovers();

  // The size of all segments, without the zeros behind the last frame of one that this run wrote. Never
  // blocks.
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Segment {
    std::filesystem::path file;
    JournalPosition start = 0;
    std::uint64_t bytes = 0;
  };

  base::Result<> begin_locked(const SegmentHeader& header);
  base::Result<> fail(base::Error error);
  std::string keep_or_remove(const std::string& file_name);
  std::filesystem::path directory() const { return data_dir_ / base::data_dir::journal; }

  base::FileSystem& files_;
  const std::filesystem::path data_dir_;
  const bool sync_;

  mutable std::mutex mutex_;  // guards all below; held during writes
  SegmentHeader header_;      // of the last segment
  std::unique_ptr<base::OutputFile> output_;
  std::uint64_t file_bytes_ = 0;  // of the last segment, with the zeros
  JournalPosition end_ = 0;
  std::vector<Segment> segments_;

  std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace spoor::tracker
