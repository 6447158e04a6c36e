// The text and CSV output of `spoor usage`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "scanner/store/usage_query.h"

namespace spoor::cli {

// One line for each directory. With the columns of a terminal: a tree of names, with bars for the share of
// the whole. Without: whole paths. Control characters are escaped.
// `incomplete` follows the name of a directory whose figures do not contain every change.
std::string usage_text(const scanner::Usage& usage, scanner::UsageOrder order,
                       std::optional<std::size_t> columns,
                       std::string_view incomplete = "a part was left for the next scan");

// One line for each owner, with the names that this machine gives them.
std::string owners_text(const scanner::Usage& usage);

// RFC 4180 with a header line, with the rest of the owners as a line without ids.
std::string owners_csv(const scanner::Usage& usage);

// RFC 4180 with a header line. Paths are unchanged bytes, or escaped with `for_terminal`. Does not list the
// rest of a directory.
std::string usage_csv(const scanner::Usage& usage, bool for_terminal);
std::string usage_csv_header(const scanner::Usage& usage);
std::string usage_csv_line(const scanner::Usage& usage, const scanner::UsageEntry& entry, bool for_terminal);

}  // namespace spoor::cli
