// Problems found in a configuration; load() joins them into one error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spoor::config {

struct Problem {
  std::string key;   // The setting concerned ("listen[0].port"); empty if none.
  std::string text;  // The whole message, on one line.
};

using Problems = std::vector<Problem>;

// Adds the problem "`key`: `what`".
void add(Problems& problems, std::string key, std::string_view what);

// Whether the keys are equal, or one names a part of the other's setting.
bool related(std::string_view one, std::string_view other);

// `text` on one line, with control characters and non-ASCII escaped, and without the password of a URL in it;
// truncated if it is long.
std::string escaped(std::string_view text);

// The same in double quotes.
std::string in_quotes(std::string_view text);

}  // namespace spoor::config
