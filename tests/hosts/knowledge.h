// What each host's scanner must know of each tracker by Spoor's promise; from this follows which scans may
// walk everything, and after which scans the totals must be right.
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

  // A host has lost its tracker's memory and its scan.db. To be called while its daemon is down and it is not
  // being scanned.
  void lose(std::size_t host);

  // Host `by` has acknowledged the mark of a change on the drives of `changed`, which is not being scanned.
  void acknowledged(std::size_t changed, std::size_t by);

  // A scan that has started.
  struct Reading {
    std::size_t scanner = 0;
    std::vector<std::uint64_t> memories;  // for each tracker: the number of its memory at that time
  };
  Reading begin(std::size_t scanner);

  struct Expected {
    bool first = false;
    // It must be full, as marks were lost that it had not read yet.
    bool is_full = false;
    // For each peer: whether its marks may be lost, so that it may be the reason for a full scan.
    std::vector<bool> may_be_a_gap;
    // The peers that responded had all acknowledged marks of its drives.
    bool has_all_marks = false;
  };
  // Whether the scanner may learn only in a later scan that the peer had another memory: both were lost. Then
  // it is partial, and a gap in the scan after that.
  bool may_meet_former(std::size_t scanner, std::size_t peer) const;
  Expected expect(const Reading& reading, const std::vector<bool>& answered) const;

  // The scan has stored its results.
  void finish(const Reading& reading, const std::vector<bool>& answered, bool full);

 private:
  bool has_lost(std::size_t host) const { return memories_.at(host) > 1; }
  // What a scanner has read of one tracker, or has walked instead: from a memory with a number between these
  // two; 0: nothing.
  struct Known {
    std::uint64_t memory_min = 0;
    std::uint64_t memory_max = 0;
  };
  struct Scanner {
    bool has_scanned = false;
    std::vector<Known> known;
    // For each tracker: whether it has acknowledged marks that the scanner has not read from it.
    std::vector<bool> unread;
  };

  mutable std::mutex mutex_;
  std::vector<Scanner> scanners_;
  std::vector<std::uint64_t> memories_;
};

}  // namespace spoor::hosts
