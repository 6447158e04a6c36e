// How far the audit of one drive has come (docs/scanner.md, "Audit").
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace spoor::scanner {

// The audit reads all directories of a drive in the order of a walk, one round each period. Each scan does
// the share that is due by the time that passed, from where the last scan ended: first what was not read for
// the longest time.
//
// Time is measured from scan to scan. If the clock was set back, no time has passed, and all readings are
// dated back by as much: the round continues, and no time lies ahead of the clock.
//
// Plain data; not thread-safe.
class AuditState {
 public:
  // All was read at `now`, as by a walk of everything: a round begins.
  static AuditState begun(base::WallTime now);

  // Reads what to_text() returned; nothing if the text is no state.
  static std::optional<AuditState> parse(const std::string& text);
  std::string to_text() const;

  // First in each scan: counts the time since the last one, and begins the next round if this one is at its
  // end and its period is over. Returns whether a round began.
  bool advance_to(base::WallTime now, std::chrono::nanoseconds period);

  // How many directories are due, of `total`; all that are left if the period is over.
  std::uint64_t due(std::uint64_t total, std::chrono::nanoseconds period) const;

  // Records that so many were visited; `is_at_end`: the round is at its end.
  void visited(std::uint64_t count, std::uint64_t total, bool is_at_end);

  bool is_at_end() const { return is_at_end_; }

  // Each directory was read then, or later.
  base::WallTime oldest() const;

 private:
  // The share of the directories that a round had read, and when.
  struct Sample {
    double share = 0;
    base::WallTime at;
  };

  static constexpr std::size_t samples_max = 256;

  void date_back_by(std::chrono::nanoseconds step);

  base::WallTime now_;                   // of the last scan
  std::chrono::nanoseconds elapsed_{0};  // since the round began
  base::WallTime all_read_at_;           // before the first round
  std::uint64_t done_ = 0;
  double share_ = 0;
  bool is_at_end_ = false;
  std::vector<Sample> last_round_;
  std::vector<Sample> this_round_;
};

}  // namespace spoor::scanner
