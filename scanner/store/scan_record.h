#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "tracker/cycles/ids.h"

namespace spoor::scanner {

// The counters of a walk.
struct WalkFigures {
  std::uint64_t dirs_walked = 0;   // read
  std::uint64_t dirs_skipped = 0;  // known and unmarked: not read
  std::uint64_t dirs_changed = 0;  // read, and different from the last time
  std::uint64_t dirs_new = 0;      // read for the first time, or replaced another of the same name
  std::uint64_t dirs_deleted = 0;  // deleted, all below included
  std::uint64_t audited = 0;       // read by the audit
  std::uint64_t missed = 0;        // of those: changed without a mark

  friend bool operator==(const WalkFigures&, const WalkFigures&) = default;
};

// A finished scan, as stored.
struct ScanRecord {
  std::uint64_t id = 0;
  base::WallTime started_at{};
  base::WallTime finished_at{};
  tracker::CycleId cycle;
  bool walked_everything = false;  // the mode is "full", else "incremental"
  bool partial = false;            // a peer did not respond: its marks are left for another scan
  std::string reason;              // why everything was walked; empty for an incremental scan
  WalkFigures figures;
  std::uint64_t files = 0;  // of all drives, after the scan
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;  // directories left for the next scan, and drives that could not be walked

  // The duration; 0 if the clock was set back during the scan.
  std::chrono::nanoseconds took() const {
    return std::max(finished_at - started_at, std::chrono::nanoseconds(0));
  }

  // Directories that were read and found unchanged: false positives of filters and gaps, and directories on
  // the way to others. Nothing for a scan that walked everything: it did not depend on marks.
  std::optional<std::uint64_t> false_positives() const {
    if (walked_everything) return std::nullopt;
    return figures.dirs_walked - std::min(figures.dirs_walked, figures.dirs_changed + figures.dirs_new);
  }

  // The share of false positives in the directories read, 0..1.
  std::optional<double> false_positive_rate() const {
    const auto count = false_positives();
    if (!count) return std::nullopt;
    return static_cast<double>(*count) / static_cast<double>(std::max<std::uint64_t>(figures.dirs_walked, 1));
  }
};

}  // namespace spoor::scanner
