// Escapes text from outside for terminals, messages and logs: names, paths, URLs, keys, error messages of
// peers. All such output uses these functions, except JSON and output for pipes, which must be exact.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace spoor::base {

inline constexpr std::size_t printable_bytes_max = 200;

// The length of the UTF-8 sequence at the start of `text` (RFC 3629); 0 if it is invalid. `text` must not be
// empty.
std::size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

// For one line: escapes control characters, characters that end a line or change its direction, and bytes
// that are not UTF-8 as \xHH. A text longer than about `bytes_max` is cut off, and ends in "...".
std::string printable(std::string_view text, std::size_t bytes_max = printable_bytes_max);

// Escapes text of several lines like printable(), but keeps line feeds, and cuts nothing off.
std::string printable_lines(std::string_view text);

// `text` with "***" in place of the user and password of a URL in it, and of all that follows "password=".
// For messages that quote a text that may be, or contain, a URL; call it before the text is cut off. It may
// hide more than needed, as a password may contain any character.
std::string without_password(std::string_view text);

}  // namespace spoor::base
