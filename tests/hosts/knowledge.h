// What each host's scanner has to know of each tracker by Spoor's promise, hence which scans may walk
// everything, and after which ones the totals must be right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace spoor::hosts {

// Thread-safe.
class Knowledge {
 public:
  explicit Knowledge(std::size_t hosts);

  // A host has lost its tracker's memory and its scan.db. To be called while its daemon is down, and no
  // scan of its own runs.
  void lose(std::size_t host);

  // A change on the drives of a host, its mark acknowledged by another one. No scan of its own runs.
  void acknowledged(std::size_t changed, std::size_t by);

  // A scan that has started.
  struct Reading {
    std::size_t scanner = 0;
    std::vector<std::uint64_t> memories;  // of each tracker: which of its memories it had then
    std::uint64_t start = 0;              // how many scans had started
  };
  Reading begin(std::size_t scanner);

  struct Expected {
    bool first = false;
    // It is full, since something was lost that it was yet to read.
    bool is_full = false;
    // Of each peer: whether what it knew may be gone, so that it may be the reason for a full scan.
    std::vector<bool> may_be_a_gap;
    // Everything that was acknowledged on its drives was to be had from those who answered.
    bool is_all_told = false;
  };
  Expected expect(const Reading& reading, const std::vector<bool>& answered) const;

  // The scan has stored its results.
  void finish(const Reading& reading, const std::vector<bool>& answered, bool full);

 private:
  // What a scanner holds of one tracker: read from a memory between these two; none is 0.
  struct Known {
    std::uint64_t memory_min = 0;
    std::uint64_t memory_max = 0;
    std::uint64_t start = 0;  // of the scan
  };
  struct Scanner {
    bool has_scanned = false;
    std::vector<Known> known;
    // Acknowledged by each tracker, and not yet read from there.
    std::vector<bool> untold;
  };

  // 16 closed cycles are kept, and a scan opens one at most. Others may be under way at either end, and
  // a daemon that was frozen may open a cycle late.
  static constexpr std::uint64_t scans_surely_kept = 12;

  mutable std::mutex mutex_;
  std::vector<Scanner> scanners_;
  std::vector<std::uint64_t> memories_;
  std::uint64_t started_ = 0;
};

}  // namespace spoor::hosts
