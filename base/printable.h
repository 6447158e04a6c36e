// Text from outside, made fit for a terminal, a message or a log: names, paths, URLs, keys, error texts of
// peers. Whatever may hold such text is written through here, except JSON and output for pipes, which are
// exact.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace spoor::base {

inline constexpr std::size_t printable_bytes_max = 200;

// The length of the UTF-8 sequence that `text`, which is not empty, begins with (RFC 3629); 0 where it is
// none.
std::size_t utf8_length(std::string_view text);

// On one line: control characters, those that end a line or change its direction, and bytes that are not
// UTF-8 are escaped as \xHH. What is longer than about `bytes_max` is cut off, and ends in "...".
std::string printable(std::string_view text, std::size_t bytes_max = printable_bytes_max);

// The same for text of several lines, as long as it is.
std::string printable_lines(std::string_view text);

}  // namespace spoor::base
