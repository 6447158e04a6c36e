// The configuration as a program starts with it: defaults, then the file, then the overrides.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "config/config.h"

namespace spoor::config {

inline constexpr std::string_view default_file = "/etc/spoor/spoor.json";
inline constexpr std::uint64_t file_bytes_max = 1ULL << 20U;

// Reads `file`, which must exist; without one, the default file, which may be missing. Each override is
// `key=value` with a dotted key; the value is JSON, or else text as it stands. The result is valid.
//
// Fails with Errc::config_invalid, where the message has a line for each problem found, or with the
// system error of a file that cannot be read or is too large.
base::Result<Config> load(const std::optional<std::filesystem::path>& file,
                          std::span<const std::string> overrides);

// The same from the content of a file; `name` stands for the file in messages.
base::Result<Config> load_text(std::string_view text, std::string_view name,
                               std::span<const std::string> overrides);

}  // namespace spoor::config
