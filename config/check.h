// Whether the settings are valid. Depends on the configuration only: accesses no file and no network.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/problem.h"

namespace spoor::config {

// One problem per invalid setting, with its key, its value and the accepted values.
Problems find_problems(const Config& config);
// Their texts.
std::vector<std::string> validate(const Config& config);

// Its part on `listen`, `peers`, `auth` and `publish`.
void check_network(const Config& config, Problems& problems);

// Whether `text` is 1 to `bytes_max` of A-Z a-z 0-9 . _ - and of `others`.
bool is_name(std::string_view text, std::size_t bytes_max = 64, std::string_view others = {});

// Calls check(key, element) for each element of a list, with the key "list[i]".
void check_each(std::string_view list, const std::ranges::range auto& elements, auto check) {
  std::size_t i = 0;
  for (const auto& element : elements) check(fmt::format("{}[{}]", list, i++), element);
}

}  // namespace spoor::config
