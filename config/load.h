// Loads the configuration: defaults, then the file, then the overrides; prints it in the form of the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config.h"

namespace spoor::config {

inline constexpr std::string_view default_file = "/etc/spoor/spoor.json";
inline constexpr std::uint64_t file_bytes_max = 1ULL << 20U;

// Reads `file`, which must exist; without one, the default file, which may be missing. Each override is
// `key=value` with a dotted key; a value that is not JSON is a string. The result is valid.
//
// Fails with std::errc::invalid_argument, with one line per problem in the message, or with the system error
// of a file that cannot be read or is larger than file_bytes_max.
base::Result<Config> load(const std::optional<std::filesystem::path>& file,
                          std::span<const std::string> overrides);

// The same from the content of a file; `name` is the file's name in messages.
base::Result<Config> load_text(std::string_view text, std::string_view name,
                               std::span<const std::string> overrides);

// All settings as JSON, in the form and order of the file. Loading the text returns an equal configuration,
// except that `listen_is_default` is false.
std::string to_json_text(Config config);

// The dotted keys of the settings that differ.
std::vector<std::string> changed_keys(Config before, Config after);

}  // namespace spoor::config
