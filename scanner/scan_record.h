#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "tracker/ids.h"

namespace spoor::scanner {

// What a walk did.
struct WalkFigures {
  std::uint64_t dirs_walked = 0;   // read
  std::uint64_t dirs_skipped = 0;  // known and clean: not touched
  std::uint64_t dirs_changed = 0;  // read, and other than at the last time
  std::uint64_t dirs_new = 0;      // read for the first time; among them those that took another's name
  std::uint64_t dirs_deleted = 0;  // gone, all below included
  std::uint64_t audited = 0;       // read by the audit
  std::uint64_t missed = 0;        // of those: changed, though nobody marked them
};

// A finished scan, as it is kept.
struct ScanRecord {
  std::uint64_t id = 0;
  base::WallTime started_at{};
  base::WallTime finished_at{};
  tracker::CycleId cycle;
  bool walked_everything = false;  // the mode is "full", else "incremental"
  bool partial = false;            // some peer was not heard: its marks wait for another scan
  std::string reason;              // why everything was walked; empty where it was not
  WalkFigures figures;
  std::uint64_t files = 0;  // of all drives, afterwards
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;  // directories left for next time, and drives that could not be walked

  // What it took; 0 where the clock was set back meanwhile.
  std::chrono::nanoseconds took() const {
    return std::max(finished_at - started_at, std::chrono::nanoseconds(0));
  }

  // Directories that were read and found as before: those that filters or gaps named in vain, and those on
  // the way to others. Nothing for a scan that walked everything: it says nothing of the marks.
  std::optional<std::uint64_t> false_positives() const {
    if (walked_everything) return std::nullopt;
    return figures.dirs_walked - std::min(figures.dirs_walked, figures.dirs_changed + figures.dirs_new);
  }

  // Their share of all that were read, 0..1.
  std::optional<double> false_positive_rate() const {
    const auto count = false_positives();
    if (!count) return std::nullopt;
    return static_cast<double>(*count) / static_cast<double>(std::max<std::uint64_t>(figures.dirs_walked, 1));
  }
};

}  // namespace spoor::scanner
