#pragma once

#include <string>

#include "config/config.h"

namespace spoor::daemon {

// Sets up the process's logger: to standard error, as text for people or as JSON, a line an event. Where
// that is the journal of systemd, each line begins with its priority, and text has no time of its own. Text
// is made printable here, whatever comes from outside; the lines of a message behind the first are indented.
void set_up_logging(const config::Config::Log& log);

void set_log_level(config::LogLevel level);

// Says why the program ends: to standard error, whether or not there is a logger.
void print_failure(const std::string& message);

// The same, in the form that the log has.
void print_failure(const config::Config::Log& log, const std::string& message);

}  // namespace spoor::daemon
