#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace spoor::base {

// A decimal number of this type that is the whole text, without a plus sign or spaces.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace spoor::base
