// What a walk read of one drive, kept until its scan is committed: a scan that was killed goes on from there.
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
#include "scanner/read_ahead.h"
#include "scanner/unfinished_scan.h"

namespace spoor::scanner {

// The files of one drive's log, in docs/formats.md: one for each scan that went on with it, each with the
// directories read, in the order of a walk in depth and by name. A damaged one ends where the damage begins.
// What can't be written is not kept: it is then read again, if need be.
//
// Not thread-safe.
class WalkLog {
 public:
  struct Root {
    std::string drive;  // its path
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint32_t birth = 0;
  };

  // What a scan may read without a word in the log: a short one is soon done again. But one that goes on
  // with another has logged too much already to lose them each time.
  static constexpr std::chrono::seconds unlogged_max{1};
  static constexpr std::size_t unlogged_bytes_max = 4U << 20U;

  // `scan` is what the log is a part of; it and `clock` must outlive it. Replays what a scan before left,
  // where `scan` goes on with that one, and it began at the same root.
  WalkLog(UnfinishedScan& scan, Root root, const base::Clock& clock);

  // Whether there is more that an earlier scan has read.
  bool is_replaying() const { return next_.has_value(); }

  // What was read of the directory. Drops what comes before it, of directories that nobody asked for.
  std::optional<DirectoryRead> take(std::string_view path);

  // Keeps what was read. Nothing as long as there is more to replay: the log is in order.
  void add(std::string_view path, const DirectoryRead& read);

  // So that a kill does no more harm.
  void flush();

  // Why it keeps nothing any more; nothing where it does.
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

// Whether a walk in depth and by name comes to `a` before `b`.
bool is_before_in_walk(std::string_view a, std::string_view b);

}  // namespace spoor::scanner
