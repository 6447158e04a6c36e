// The events of a run of the test, and whether the run must end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>

namespace spoor::hosts {

// Thread-safe.
class Ledger {
 public:
  // Records an event; the newest 200 are kept.
  void note(const std::string& event);

  // Spoor violated its promise, or the test cannot continue. Keeps the first violation; the run ends.
  void violated(const std::string& what);

  void count(const std::string& figure, std::uint64_t more = 1);

  std::string violation() const;
  bool is_violated() const { return !violation().empty(); }
  std::string newest_events() const;
  std::string figures() const;

  // Another scan has ended.
  void scan_ended();

  // Waits until this number of further scans has ended; returns false after a timeout or a violation.
  bool wait_for_scans(std::uint64_t more, std::chrono::steady_clock::time_point until) const;

 private:
  void note_locked(const std::string& event);

  static constexpr std::size_t events_max = 200;

  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();

  mutable std::mutex mutex_;  // guards the members below
  mutable std::condition_variable changed_;
  std::deque<std::string> events_;
  std::map<std::string, std::uint64_t> figures_;
  std::string violation_;
  std::uint64_t scans_ = 0;
};

}  // namespace spoor::hosts
