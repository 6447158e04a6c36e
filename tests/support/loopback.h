// An address of this machine that no other test process uses.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string>

namespace spoor::support {

// An address in 127.0.0.0/8 derived from the process id. Tests run in parallel, so the port of a stopped
// daemon on 127.0.0.1 may belong to another test's daemon a moment later; on this address it stays closed.
inline std::string own_loopback() {
  const auto pid = static_cast<std::uint32_t>(::getpid());  // 22 bits at most
  return "127." + std::to_string(1 + (pid >> 16)) + "." + std::to_string(pid >> 8 & 0xFFU) + "." +
         std::to_string(pid & 0xFFU);
}

}  // namespace spoor::support
