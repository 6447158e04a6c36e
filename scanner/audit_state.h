// How far the audit of one drive has come (docs/scanner.md, "Audit").
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace spoor::scanner {

// The audit goes round: through all directories of a drive in the order of a walk, one round each period. A
// scan does the share that the time asks for, from where the last scan ended; so what comes next is what was
// not read for the longest time.
//
// Time is measured from scan to scan. Where the clock was set back, none has passed, and all that was read is
// dated back by as much: the round goes on, and no time lies ahead of the clock.
//
// Plain data; not thread-safe.
class AuditState {
 public:
  // All was read at `now`, as by a walk of everything: a round begins.
  static AuditState begun(base::WallTime now);

  // As to_text() gave it, or as versions gave it that had one round for all drives; nothing where that is no
  // state.
  static std::optional<AuditState> parse(const std::string& text);
  std::string to_text() const;

  // Of a round through all drives: what is certain of each of them. Nothing counts as read in a round that is
  // not over.
  AuditState of_one_drive() const;

  // To be called first in each scan. Counts the time since the last one, and begins the next round, if the
  // period of this one is over and it has come to its end. Whether it did.
  bool advance_to(base::WallTime now, std::chrono::nanoseconds period);

  // How many directories are due, of `total`; all that are left where the period is over.
  std::uint64_t due(std::uint64_t total, std::chrono::nanoseconds period) const;

  // So many were visited, up to the end of the round where `is_at_end`.
  void visited(std::uint64_t count, std::uint64_t total, bool is_at_end);

  bool is_at_end() const { return is_at_end_; }

  // When the directory was read that was not for the longest time: not before that.
  base::WallTime oldest() const;

 private:
  // Up to which share of the directories a round had come, and when.
  struct Sample {
    double share = 0;
    base::WallTime at;
  };

  static constexpr std::size_t samples_max = 256;

  void take_over_round_begun_at(base::WallTime began);
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
