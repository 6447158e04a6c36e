#pragma once

#include <system_error>

namespace spoor::config {

// One value per failure that some caller handles differently. A file that cannot be read is reported as the
// system error.
enum class Errc {
  config_invalid = 1,  // A setting, a key or the form of the configuration is wrong.
};

const std::error_category& error_category();
std::error_code make_error_code(Errc code);

}  // namespace spoor::config

template <>
struct std::is_error_code_enum<spoor::config::Errc> : std::true_type {};
