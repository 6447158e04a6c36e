#include "tests/hosts/ledger.h"

#include <iomanip>
#include <sstream>

namespace spoor::hosts {

void Ledger::note(const std::string& event) {
  const std::scoped_lock lock(mutex_);
  note_locked(event);
}

void Ledger::note_locked(const std::string& event) {
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - started_;
  std::ostringstream line;
  line << std::fixed << std::setprecision(3) << std::setw(9) << since.count() << "  " << event;
  events_.push_back(line.str());
  if (events_.size() > events_max) events_.pop_front();
}

void Ledger::violated(const std::string& what) {
  const std::scoped_lock lock(mutex_);
  note_locked("VIOLATED: " + what);
  if (violation_.empty()) violation_ = what;
  changed_.notify_all();
}

void Ledger::count(const std::string& figure, std::uint64_t more) {
  const std::scoped_lock lock(mutex_);
  figures_[figure] += more;
}

std::string Ledger::violation() const {
  const std::scoped_lock lock(mutex_);
  return violation_;
}

std::string Ledger::newest_events() const {
  const std::scoped_lock lock(mutex_);
  std::string text;
  for (const std::string& event : events_) text += event + '\n';
  return text;
}

std::string Ledger::figures() const {
  const std::scoped_lock lock(mutex_);
  std::string text;
  for (const auto& [name, number] : figures_) {
    text += (text.empty() ? "" : ", ") + std::to_string(number) + ' ' + name;
  }
  return text;
}

void Ledger::scan_ended() {
  const std::scoped_lock lock(mutex_);
  ++scans_;
  changed_.notify_all();
}

bool Ledger::wait_for_scans(std::uint64_t more, std::chrono::steady_clock::time_point until) const {
  std::unique_lock lock(mutex_);
  const std::uint64_t wanted = scans_ + more;
  changed_.wait_until(lock, until, [&] { return scans_ >= wanted || !violation_.empty(); });
  return scans_ >= wanted && violation_.empty();
}

}  // namespace spoor::hosts
