#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cli/options.h"
#include "cli/scan_progress.h"
#include "config/config.h"
#include "scanner/scan.h"
#include "scanner/store/usage_database.h"

namespace spoor::cli {

// The part of `spoor scan` after gathering, set up from the configuration. Not thread-safe.
class ScanWalk {
 public:
  struct Options {
    bool full = false;
    std::optional<ScanProgress::Form> progress = {};  // on standard error
  };

  // The references must outlive it. The caller holds the scan lock.
  ScanWalk(const GlobalOptions& global, const config::Config& config, const base::Clock& clock,
           scanner::UsageDatabase& database, Options options);

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
  std::vector<scanner::Drive> drives() const;
  bool stamp_drive(const std::filesystem::path& drive, const std::string& stamp,
                   const std::string& before) const;
  std::vector<scanner::UsageLimit> limits() const;
  std::size_t threads() const;
  std::optional<std::uint64_t> oldest_unread();

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
