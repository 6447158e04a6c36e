// What a walk read of one drive, kept until its scan is committed: a scan that was killed is resumed from
// there.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_system.h"
#include "scanner/walk/read_ahead.h"
#include "scanner/walk/unfinished_scan.h"

namespace spoor::scanner {

// The files of one drive's log (docs/formats.md): one for the scan and one for each that resumed it, each
// with the directories read, in the order of a walk in depth and by name. A damaged file ends where the
// damage begins. What can't be written is not kept: a resumed scan reads it again.
//
// Not thread-safe.
class WalkLog {
 public:
  struct Root {
    std::string drive;  // its path
    std::uint64_t inode = 0;
    std::uint32_t birth = 0;
  };

  // A scan writes no log before it has read for so long, or so much: a short scan is soon repeated. A resumed
  // scan writes at once: else repeated kills would lose as much each time.
  static constexpr std::chrono::seconds unlogged_max{1};
  static constexpr std::size_t unlogged_bytes_max = 4U << 20U;

  // A log of `scan`; that and `clock` must outlive it. Replays the log of the scan that `scan` resumes, if
  // that began at the same root.
  WalkLog(UnfinishedScan& scan, Root root, const base::Clock& clock);

  // Whether there is more to replay.
  bool is_replaying() const { return next_.has_value(); }

  // Returns what the earlier scan read of the directory, if it did. Drops all that comes before it in the
  // log.
  std::optional<DirectoryRead> take(std::string_view path);

  // Records what was read. Does nothing while there is more to replay: the log is in order.
  void add(std::string_view path, const DirectoryRead& read);

  // Writes what is buffered: a kill loses nothing that was added before.
  void flush();

  // Why it does not record any more; nothing if it does.
  const std::optional<base::Error>& failure() const { return failure_; }

 private:
  struct Logged {
    std::string path;
    DirectoryRead read;
  };

  bool open_next_file();
  std::optional<Logged> read_next();
  std::optional<std::string> read_frame();
  bool is_due() const;
  base::Result<> write_buffer();

  UnfinishedScan& scan_;
  const Root root_;
  const std::string name_;
  const base::Clock& clock_;

  std::vector<std::string> files_to_read_;  // the next one last
  const bool goes_on_;
  std::ifstream in_;
  std::uint64_t left_in_file_ = 0;
  std::optional<Logged> next_;
  std::string last_read_;  // path

  std::string unwritten_;
  std::size_t unwritten_count_ = 0;
  std::string last_added_;  // path
  std::unique_ptr<base::OutputFile> out_;
  base::SteadyTime synced_at_;  // or begun
  std::optional<base::Error> failure_;
};

}  // namespace spoor::scanner
