// The journal: what was marked since the last durable snapshot, in `<data_dir>/journal`.
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

#include "base/error.h"
#include "base/file_system.h"
#include "tracker/journal_segment.h"

namespace spoor::tracker {

// One file as it was found.
struct LoadedSegment {
  std::string file_name;
  JournalPosition start = 0;  // by its name
  std::unique_ptr<const std::string> bytes;
  // Nothing where the file can't be used; then `error` says why.
  std::optional<SegmentHeader> header;
  SegmentFrames frames;     // they view `bytes`
  bool had_frames = false;  // of a file without a header: it was more than just being created
  std::string error;
};

struct LoadedJournal {
  std::vector<LoadedSegment> segments;  // by start
  std::string error;                    // why the files could not be listed
};

// The files of `instance`'s journal, by their names. Changes nothing.
LoadedJournal load_journal(base::FileSystem& files, const std::filesystem::path& data_dir,
                           const NodeIdentity& owner, const InstanceId& instance);

// The journal as it is written: a list of segments, the last of which grows.
//
// Thread-safe. After a failed write nothing is appended any more until begin() opens a new segment, since
// what a failed sync left on the disk is not known.
class Journal {
 public:
  struct Options {
    std::filesystem::path data_dir;
    NodeIdentity owner;
    bool sync = true;  // append() returns only once the power may go
  };

  // `files` must outlive the journal.
  Journal(base::FileSystem& files, Options options) : files_(files), options_(std::move(options)) {}

  // Takes over what the last run of the instance left, to be cut with the rest. Before begin().
  void adopt(const LoadedJournal& loaded);

  // Makes durable what was adopted: a process that was killed leaves behind what the next power cut may
  // take.
  base::Result<> sync_adopted();

  // Removes the segment just begun, since the run it was for will not be.
  void abandon();

  // Opens a new segment, durable when it returns. Older ones stay until they are cut.
  base::Result<> begin(const SegmentHeader& header);

  // Writes the records behind the last ones, as one frame.
  base::Result<> append(std::string_view records);

  // Opens a new segment behind the last record, so that a snapshot of all before it frees the others.
  base::Result<> rotate();

  // Removes the files that hold nothing behind `position`, but for the last. What can't be removed is
  // tried again at the next cut; replaying it would do no harm.
  void cut(JournalPosition position);

  // Removes every file of the directory that is no segment of this journal. What can't be told (damaged, or
  // of an unknown version) is kept as `<data_dir>/journal/aside.corrupt` or `aside.v2`, the last of each.
  // Returns what was kept, in sentences.
  std::vector<std::string> remove_leftovers();

  // Of all segments. Never waits.
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
  std::filesystem::path directory() const { return options_.data_dir / "journal"; }

  base::FileSystem& files_;
  const Options options_;

  mutable std::mutex mutex_;  // guards all below; held during writes
  SegmentHeader header_;      // of the last segment
  std::unique_ptr<base::OutputFile> output_;
  JournalPosition end_ = 0;
  std::vector<Segment> segments_;

  std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace spoor::tracker
