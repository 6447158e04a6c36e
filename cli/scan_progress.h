#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "scanner/walk/scan_input.h"

namespace spoor::cli {

// The progress of a scan that has walked for `walked_for`: "12,345 directories read, 25,100/s; 40 %, 7.1 s
// left". The part after the semicolon is an estimate from the directories in the database before the scan. It
// is omitted if there were none.
std::string progress_text(const scanner::Progress& progress, std::chrono::nanoseconds walked_for);

// Writes the progress periodically: on a terminal every 200 ms, overwriting one line; in a log every minute,
// on a new line. Not thread-safe.
class ScanProgress {
 public:
  enum class Form { terminal, log };
  using Write = std::function<void(std::string_view)>;

  // `clock` must outlive it.
  ScanProgress(const base::Clock& clock, Form form, Write write);

  void report(const scanner::Progress& progress);

  // Erases the line on a terminal.
  void end();

 private:
  const base::Clock& clock_;
  const Form form_;
  const Write write_;
  std::optional<base::SteadyTime> started_at_;  // time of the first report; an audit may run before it
  base::SteadyTime reported_at_;
  bool is_line_open_ = false;
};

}  // namespace spoor::cli
