// Errors as `application/problem+json` (RFC 9457), each with a stable code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/http_message.h"

namespace spoor::daemon {

struct Problem {
  unsigned status = 500;
  std::string code;    // stable, for programs
  std::string detail;  // for people: what was wrong, where, and what to do

  // What is at fault, by its place in the request, and the path where it is one.
  std::optional<std::size_t> index = std::nullopt;
  std::optional<std::string> path = std::nullopt;

  // From where to read the change feed once everything was taken.
  std::string feed = {};
  std::uint64_t scan = 0;
};

HttpResponse to_response(const Problem& problem);

// Of the statuses that the daemon answers with (RFC 9110, section 15; RFC 6585).
std::string_view reason_phrase(unsigned status);

}  // namespace spoor::daemon
