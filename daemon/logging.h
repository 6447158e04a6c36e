#pragma once

#include "config/config.h"

namespace spoor::daemon {

// Sets up the process's logger: to standard error, as text for people or as JSON, a line an event.
void set_up_logging(const config::Config::Log& log);

void set_log_level(config::LogLevel level);

}  // namespace spoor::daemon
