// What `rsync --out-format='%i %n'` prints.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tracker/path.h"

namespace spoor::cli {

// The mark of the entry that a line of it names, without its end: `dir` for a directory, `file` for all else;
// deletions too. The name's escapes (`\#` and three octal digits) are the bytes again that they stand for,
// whatever the locale of rsync. Nothing for any other line, such as a message. Source: rsync(1),
// --itemize-changes, and filtered_fwrite() of its log.c.
std::optional<tracker::Mark> read_rsync_line(std::string_view line);

}  // namespace spoor::cli
