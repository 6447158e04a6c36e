#pragma once

#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_system.h"
#include "cli/scan_progress.h"
#include "config/config.h"
#include "scanner/scan.h"
#include "scanner/unfinished_scan.h"
#include "scanner/usage_database.h"
#include "tracker/namespace_rules.h"

namespace spoor::cli {

tracker::NamespaceRules rules_of(const config::Config& config);

// The walk of `spoor scan`, as the configuration wants it. Not thread-safe.
class ScanWalk {
 public:
  struct Options {
    bool full = false;
    std::optional<ScanProgress::Form> progress = {};  // on standard error
  };

  // All must outlive it. The caller holds the scan lock.
  ScanWalk(const config::Config& config, const base::Clock& clock, scanner::UsageDatabase& database,
           Options options);

  // What the scan was told that was killed last time, and that run() goes on with; nothing where there is
  // none, or where everything is to be read now.
  base::Result<std::optional<scanner::ScanInput>> find_unfinished();

  // Stops on SIGTERM and SIGINT. Fails as run_scan() does. A stop that came too late for that is seen by
  // was_stopped().
  base::Result<scanner::ScanReport> run(const scanner::ScanInput& input);
  bool was_stopped() const { return was_stopped_; }

 private:
  std::vector<scanner::Drive> drives() const;
  std::size_t threads() const;
  std::optional<std::uint64_t> oldest_unread() const;

  const config::Config& config_;
  const base::Clock& clock_;
  scanner::UsageDatabase& database_;
  const std::optional<ScanProgress::Form> progress_;
  base::PosixFileSystem files_;
  scanner::UnfinishedScan unfinished_;
  scanner::ScanOptions options_;
  bool was_stopped_ = false;
};

}  // namespace spoor::cli
