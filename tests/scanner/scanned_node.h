// A node as the scanner sees it: drives, a tracker that is told of changes, a database.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "scanner/scan.h"
#include "scanner/store/usage_database.h"
#include "scanner/usage/usage_query.h"
#include "tests/fakes/manual_clock.h"
#include "tests/scanner/faulty_reader.h"
#include "tests/support/temp_directory.h"
#include "tracker/cycles/tracker.h"

namespace spoor::scanner {

void write_file(const std::filesystem::path& path, std::size_t bytes);

// What a walk that knows nothing of Spoor finds: as in du, a file with several names counts once in each
// total.
struct Measured {
  std::uint64_t files = 0;
  std::uint64_t dirs = 0;
  std::uint64_t bytes = 0;
  std::uint64_t allocated = 0;
  std::int64_t mtime_ns = 0;  // the newest

  friend bool operator==(const Measured&, const Measured&) = default;
};
std::ostream& operator<<(std::ostream& out, const Measured& measured);

// Every directory of the drives, by logical path.
std::map<std::string, Measured> measure(const std::vector<std::filesystem::path>& drives);
// The same of what a query found.
std::map<std::string, Measured> totals_of(const Usage& usage);

// Likewise by owner, of each directory at most `depth` levels below the root.
std::map<std::string, Owners> measure_owners(const std::filesystem::path& drive, std::uint32_t depth);

// Time passes when it is waited for.
class InstantWaiter final : public Waiter {
 public:
  explicit InstantWaiter(fakes::ManualClock& clock) : clock_(clock) {}
  void wait(base::SteadyTime until, const std::stop_token& /*stop*/) override {
    ++waits;
    if (until > clock_.steady_now()) clock_.advance(until - clock_.steady_now());
  }

  int waits = 0;

 private:
  fakes::ManualClock& clock_;
};

// Makes of the table of version 5 that of the versions before.
inline constexpr const char* peers_to_cursors =
    "CREATE TABLE cursors(peer TEXT PRIMARY KEY, instance TEXT NOT NULL, cycle INTEGER NOT NULL) WITHOUT "
    "ROWID; "
    "INSERT INTO cursors SELECT name, instance, cycle FROM peers; DROP TABLE peers";

// Makes a chain of directories, as deep as no path can name, and removes it, as no path can.
class DeepTree {
 public:
  explicit DeepTree(const std::filesystem::path& top);

  // Makes directories of these names, and goes to the last of them.
  void descend(const std::vector<std::string>& names);
  void make_file(const std::string& name) const;
  // All that descend() made, and a "file" at the end, from the bottom up.
  void remove();

 private:
  DirectoryHandle at_;
  std::vector<std::vector<std::string>> levels_;
};

class ScannedNode : public ::testing::Test {
 public:
  explicit ScannedNode(std::vector<std::string> drive_names = {"drive"},
                       const tracker::Tracker::Options& tracker_options = {
                           .levels = tracker::LevelSchedule(10'000, 1e-6)});

  std::filesystem::path drive(std::size_t number = 0) const { return options.drives[number].path; }
  std::vector<std::filesystem::path> drive_paths() const;  // sorted
  std::filesystem::path on_drive(const std::string& path, std::size_t number = 0) const {
    return drive(number) / path;
  }

  // All of the file times are long ago, and the drive's directories get other times with their entries: if
  // each change gets a time of its own (Linux 6.13). Otherwise directories are read, as by default.
  void trust_times();

  // Changes on the drive, without a mark.
  void make_file(const std::string& path, std::size_t bytes = 10) { write_file(on_drive(path), bytes); }
  void make_directory(const std::string& path) { std::filesystem::create_directories(on_drive(path)); }
  void remove(const std::string& path) { std::filesystem::remove_all(on_drive(path)); }
  void clear_drive() {
    remove("");
    make_directory("");
  }
  void rename(const std::string& from, const std::string& to) {
    std::filesystem::rename(on_drive(from), on_drive(to));
  }

  // Writes the identity that the drive carries, 32 times that digit, and lets the next scan expect it.
  void give_identity(std::size_t number, char digit);

  void mark(const std::string& path, tracker::MarkKind kind = tracker::MarkKind::dir);

  // Gathers as `spoor scan` does, and scans; or goes on with a scan that did not end, where `resumes`.
  base::Result<ScanReport> try_scan();
  // The same, which has to succeed.
  ScanReport scan();

  // As `spoor scan --full`.
  ScanReport scan_everything();

  // Scans until a directory is about to be read for which that holds. The scan may end before.
  base::Result<ScanReport> scan_stopped_when(std::function<bool(std::string_view path)> is_to_stop);

  // Scans until this directory is about to be read; returns whether the scan was stopped.
  bool stop_at(const std::string& path);

  // Scans until so many directories were read, and the next one is about to be. The scan may end before.
  base::Result<ScanReport> scan_killed_after(std::uint64_t reads);

  // Like scan(), with read_paths of this scan alone.
  ScanReport scan_counting_reads();
  bool was_read(const std::string& path) const { return reader.read_paths.contains(path); }

  std::optional<Usage> usage(const std::string& path, std::uint64_t depth = 1);
  std::uint64_t files(const std::string& path);
  // Nothing if they are not known.
  std::optional<Owners> owners(const std::string& path);
  bool is_complete(const std::string& path);

  // Every directory of the drives has the totals that were measured, and the database holds no others.
  // The newest mtimes are not compared where something changed beneath the scan that did not mark it.
  enum class Newest { compared, unknown };
  // The owners, too, if they are kept.
  void expect_exact(Newest newest = Newest::compared);
  void expect_exact_owners();

  // Rows of directories, roots included, as the database has them.
  std::int64_t row_count();
  void reopen_database();
  std::filesystem::path file() const { return UsageDatabase::file_in(temp.path()); }
  // A database that will replace it once a scan was made.
  void begin_rebuild(const std::string& why);
  void finish_rebuild();

  support::TempDirectory temp;
  fakes::ManualClock clock;
  InstantWaiter waiter{clock};
  FaultyReader reader;
  ScanOptions options;
  std::unique_ptr<tracker::Tracker> tracker;
  std::unique_ptr<UsageDatabase> database;
  std::stop_source stop;
  std::function<void(const Progress&)> progress;
  StampDrive stamp_drive;
  // Called with what a scan was told, before it begins.
  std::function<void(ScanInput&)> adjust_input;
  bool partial = false;
  bool merges = true;    // the rows put apart, after every third scan
  int commits_each = 8;  // scan of so many, at each step; and each one where `resumes`
  bool resumes = false;
  bool has_resumed = false;  // the last scan: it knows nothing of changes after the one it went on with began
  std::size_t start_level = 0;

 private:
  std::optional<ScanInput> find_unfinished();

  int scans_ = 0;
  ScanInput gather(const tracker::PeerBook& book);
};

}  // namespace spoor::scanner
