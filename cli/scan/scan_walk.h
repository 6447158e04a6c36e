#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cli/program/options.h"
#include "config/config.h"
#include "scanner/scan.h"
#include "scanner/store/usage_database.h"
#include "scanner/walk/scan_input.h"

namespace spoor::cli {

// The progress of a scan that has walked for `walked_for`: "12,345 directories read, 25,100/s; 40 %, 7.1 s
// left". The part after the semicolon is an estimate from the directories in the database before the scan. It
// is omitted if there were none.
std::string progress_text(const scanner::Progress& progress, std::chrono::nanoseconds walked_for);

// Writes the progress periodically: on a terminal every 200 ms, overwriting one line; in a log every minute,
// on a new line. Not thread-safe.
class ScanProgress {
 public:
  enum class Form { terminal, log };
  using Write = std::function<void(std::string_view)>;

  // `clock` must outlive it.
  ScanProgress(const base::Clock& clock, Form form, Write write);

  void report(const scanner::Progress& progress);

  // Erases the line on a terminal.
  void end();

 private:
  const base::Clock& clock_;
  const Form form_;
  const Write write_;
  std::optional<base::SteadyTime> started_at_;  // time of the first report; an audit may run before it
  base::SteadyTime reported_at_;
  bool is_line_open_ = false;
};

// The part of `spoor scan` after gathering, set up from the configuration. Not thread-safe.
class ScanWalk {
 public:
  // `progress`: on standard error. The references must outlive it. The caller holds the scan lock.
  ScanWalk(const GlobalOptions& global, const config::Config& config, const base::Clock& clock,
           scanner::UsageDatabase& database, bool full, std::optional<ScanProgress::Form> progress);

  // The input of an unfinished scan, which run() resumes; nothing if there is none, or for a full scan.
  base::Result<std::optional<scanner::ScanInput>> find_unfinished();

  // Stops on SIGTERM and SIGINT. Fails as run_scan() does. was_stopped() also reports a stop that came too
  // late to fail the scan.
  base::Result<scanner::ScanReport> run(const scanner::ScanInput& input);
  bool was_stopped() const { return was_stopped_; }

  // Waits until spoor-watch has marked all that changed on the watched drives before. Before each gather.
  // Drives of which that is not known are walked, or else, by `watch.unwatched`, listed in unwatched().
  base::Result<> synchronise();
  const std::vector<std::string>& unwatched() const { return unwatched_; }

  // An error that does not fail the scan; empty: none.
  const std::string& note() const { return note_; }

 private:
  bool stamp_drive(const std::filesystem::path& drive, const std::string& stamp,
                   const std::string& before) const;

  const GlobalOptions& global_;
  const config::Config& config_;
  const base::Clock& clock_;
  scanner::UsageDatabase& database_;
  const std::optional<ScanProgress::Form> progress_;
  scanner::ScanOptions options_;
  std::vector<std::string> unwatched_;
  std::string note_;
  bool was_stopped_ = false;
};

}  // namespace spoor::cli
