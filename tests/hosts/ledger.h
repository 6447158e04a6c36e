// The events of a run of the test, and whether the run must end.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace spoor::hosts {

// Thread-safe.
class Ledger {
 public:
  // Records an event; the newest 200 are kept.
  void note(const std::string& event) {
    const std::scoped_lock lock(mutex_);
    note_locked(event);
  }

  // Spoor violated its promise, or the test cannot continue. Keeps the first violation; the run ends.
  void violated(const std::string& what) {
    const std::scoped_lock lock(mutex_);
    note_locked("VIOLATED: " + what);
    if (violation_.empty()) violation_ = what;
    changed_.notify_all();
  }

  void count(const std::string& figure, std::uint64_t more = 1) {
    const std::scoped_lock lock(mutex_);
    figures_[figure] += more;
  }

  std::string violation() const {
    const std::scoped_lock lock(mutex_);
    return violation_;
  }
  bool is_violated() const { return !violation().empty(); }

  std::string newest_events() const {
    const std::scoped_lock lock(mutex_);
    return fmt::format("{}\n", fmt::join(events_, "\n"));
  }

  std::string figures() const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> texts;
    for (const auto& [name, number] : figures_) texts.push_back(fmt::format("{} {}", number, name));
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  // Another scan has ended.
  void scan_ended() {
    const std::scoped_lock lock(mutex_);
    ++scans_;
    changed_.notify_all();
  }

  // Waits until this number of further scans has ended; returns false after a timeout or a violation.
  bool wait_for_scans(std::uint64_t more, std::chrono::steady_clock::time_point until) const {
    std::unique_lock lock(mutex_);
    const std::uint64_t wanted = scans_ + more;
    changed_.wait_until(lock, until, [&] { return scans_ >= wanted || !violation_.empty(); });
    return scans_ >= wanted && violation_.empty();
  }

 private:
  void note_locked(const std::string& event) {
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - started_;
    events_.push_back(fmt::format("{:9.3f}  {}", since.count(), event));
    if (events_.size() > events_max) events_.pop_front();
  }

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
