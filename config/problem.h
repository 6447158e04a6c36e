// Problems found in a configuration; load() joins them into one error.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spoor::config {

struct Problem {
  std::string key;   // The setting concerned ("listen[0].port"); empty if none.
  std::string text;  // The whole message, on one line.
};

using Problems = std::vector<Problem>;

// Adds the problem "`key`: `what`".
template <class... Values>
void add(Problems& problems, std::string_view key, fmt::format_string<Values...> what, Values&&... values) {
  std::string text = fmt::format("{}: ", key) + fmt::format(what, std::forward<Values>(values)...);
  problems.push_back({std::string(key), std::move(text)});
}

// Whether the keys are equal, or one names a part of the other's setting.
bool related(std::string_view one, std::string_view other);

// `text` on one line, with control characters and non-ASCII escaped, and without the password of a URL in it;
// truncated if it is long.
std::string escaped(std::string_view text);

// The same in double quotes.
std::string in_quotes(std::string_view text);

// The entry of `known` (dotted keys, not empty) with the smallest edit distance to `key`. The right name in
// the wrong section counts as less than one edit.
std::string_view nearest_key(std::string_view key, std::span<const std::string_view> known);

// "unknown key 'tracker.item': did you mean 'tracker.items'?"
Problem unknown_key(std::string_view key, std::span<const std::string_view> known);

}  // namespace spoor::config
