#pragma once

#include <string>
#include <string_view>

#include "config/config.h"

namespace spoor::config {

// Sets up the logger of the process, which writes text or JSON to standard error, one line per event. If
// standard error is the journal of systemd, each line begins with its priority, and text lines have no
// timestamp. Text is made printable; the lines of a message after the first are indented. From then on,
// SIGPIPE is ignored. No event waits for the reader of standard error: those that it does not take are
// lost, and counted.
void set_up_logging(const Config::Log& log);

void set_log_level(LogLevel level);

// Prints why `program` ends to standard error; needs no logger.
void print_failure(std::string_view program, const std::string& message);

// The same in the format of the log; for JSON, the logger must be set up.
void print_failure(std::string_view program, const Config::Log& log, const std::string& message);

}  // namespace spoor::config
