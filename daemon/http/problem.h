// Errors in the format `application/problem+json` (RFC 9457), each with a stable code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/http/http_message.h"

namespace spoor::daemon {

struct Problem {
  unsigned status = 500;
  std::string code;    // stable, for programs
  std::string detail;  // for people: what was wrong, where, and what to do

  // The index in the request of the item that caused the problem, and its path if it is a path.
  std::optional<std::size_t> index = std::nullopt;
  std::optional<std::string> path = std::nullopt;

  // The position from which to read the change feed after a full read of everything.
  std::string feed = {};
  std::uint64_t scan = 0;
};

HttpResponse to_response(const Problem& problem);

// The phrases of the statuses that the daemon sends (RFC 9110, section 15; RFC 6585).
std::string_view reason_phrase(unsigned status);

}  // namespace spoor::daemon
