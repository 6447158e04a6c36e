#include "base/error.h"

#include <fmt/core.h>

namespace spoor::base {

void throw_exception_from_error(const Error& error, const boost::source_location& /*where*/) {
  throw Failure(error);
}

Error system_error(int error_number, const std::string& what) {
  const std::error_code code(error_number, std::system_category());
  return {code, fmt::format("{}: {}", what, code.message())};
}

Error wrap(const std::string& what, const Error& inner) {
  return {inner.code, fmt::format("{}: {}", what, inner.message)};
}

}  // namespace spoor::base
