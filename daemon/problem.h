// Errors as `application/problem+json` (RFC 9457), each with a stable code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/http_message.h"

namespace spoor::daemon {

struct Problem {
  unsigned status = 500;
  std::string code;    // stable, for programs
  std::string detail;  // for people: what was wrong, where, and what to do

  // The path at fault, by its place in the request, where there is one.
  std::optional<std::size_t> index = std::nullopt;
  std::string path = {};

  // From where to read the change feed once everything was taken.
  std::string feed = {};
  std::uint64_t scan = 0;
};

HttpResponse to_response(const Problem& problem);

}  // namespace spoor::daemon
