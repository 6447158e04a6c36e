// What is wrong with a configuration, piece by piece, until the pieces make one error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spoor::config {

struct Problem {
  std::string key;   // The setting it is about ("listen[0].port"); empty if about none.
  std::string text;  // The whole sentence, on one line.
};

using Problems = std::vector<Problem>;

// Whether one key names the other's setting, a part of it or what it is part of.
bool related(std::string_view one, std::string_view other);

// `text` on one line, harmless to a terminal, and cut where it is long.
std::string escaped(std::string_view text);

// The same in double quotes.
std::string in_quotes(std::string_view text);

}  // namespace spoor::config
