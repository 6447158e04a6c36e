#include "cli/scan_progress.h"

#include <fmt/core.h>

#include <utility>

#include "cli/format.h"

namespace spoor::cli {
namespace {

using std::chrono::duration;
using std::chrono::nanoseconds;

constexpr std::chrono::milliseconds terminal_interval(200);
constexpr std::chrono::minutes log_interval(1);

nanoseconds interval(ScanProgress::Form form) {
  return form == ScanProgress::Form::terminal ? nanoseconds(terminal_interval) : nanoseconds(log_interval);
}

}  // namespace

std::string progress_text(const scanner::Progress& progress, nanoseconds walked_for) {
  const double seconds = duration<double>(walked_for).count();
  std::string text = with_commas(progress.figures.dirs_walked) + " directories read";
  if (seconds <= 0) return text;
  const double rate = static_cast<double>(progress.figures.dirs_walked) / seconds;
  text += fmt::format(", {}/s", with_commas(static_cast<std::uint64_t>(rate)));
  if (progress.dirs_known == 0 || progress.dirs_done == 0) return text;
  const double done = static_cast<double>(progress.dirs_done) / static_cast<double>(progress.dirs_known);
  if (done >= 1) return text;  // more directories than before
  const auto left = std::chrono::duration_cast<nanoseconds>(walked_for * ((1 - done) / done));
  return text + fmt::format("; {:.0f} %, {} left", done * 100, human_duration(left));
}

ScanProgress::ScanProgress(const base::Clock& clock, Form form, Write write)
    : clock_(clock), form_(form), write_(std::move(write)) {}

void ScanProgress::report(const scanner::Progress& progress) {
  const auto now = clock_.steady_now();
  if (!started_at_) reported_at_ = *(started_at_ = now);
  if (now - reported_at_ < interval(form_)) return;
  reported_at_ = now;
  const std::string text = progress_text(progress, now - *started_at_);
  is_line_open_ = form_ == Form::terminal;
  write_(is_line_open_ ? "\r" + text + "\x1b[K" : "spoor: " + text + "\n");
}

void ScanProgress::end() {
  if (std::exchange(is_line_open_, false)) write_("\r\x1b[K");
}

}  // namespace spoor::cli
