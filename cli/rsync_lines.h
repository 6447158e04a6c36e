// What `rsync --out-format='%i %n'` prints.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tracker/paths/path.h"

namespace spoor::cli {

// Returns the mark of the entry that a line names: `dir` for a directory, `file` for any other entry, deleted
// ones included. `line` has no line end. Decodes the escapes of the name (`\#` and three octal digits),
// independently of rsync's locale. Nothing for any other line, such as a message. Source: rsync(1),
// --itemize-changes, and filtered_fwrite() of its log.c.
std::optional<tracker::Mark> read_rsync_line(std::string_view line);

}  // namespace spoor::cli
