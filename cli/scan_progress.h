#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "scanner/walker.h"

namespace spoor::cli {

// How far a scan is that has been walking for `walked_for`: "12,345 directories read, 25,100/s; 40 %, 7.1 s
// left". What is left is a guess, by what the database knew before; nothing is said of it where it knew
// nothing.
std::string progress_text(const scanner::Progress& progress, std::chrono::nanoseconds walked_for);

// Says it now and then: on a terminal over and over on one line, in a log in a line of its own. Not
// thread-safe.
class ScanProgress {
 public:
  enum class Form { terminal, log };
  using Write = std::function<void(std::string_view)>;

  // `clock` must outlive it.
  ScanProgress(const base::Clock& clock, Form form, Write write);

  void tell(const scanner::Progress& progress);

  // Wipes the line of a terminal.
  void end();

 private:
  const base::Clock& clock_;
  const Form form_;
  const Write write_;
  std::optional<base::SteadyTime> started_at_;  // when it was told first: an audit may come before
  base::SteadyTime told_at_;
  bool is_line_open_ = false;
};

}  // namespace spoor::cli
