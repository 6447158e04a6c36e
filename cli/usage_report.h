// What `spoor usage` says to people and spreadsheets.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "scanner/usage_query.h"

namespace spoor::cli {

// A line for each directory. With the columns of a terminal it is a tree of names with bars, each a share of
// the whole; without, lines with whole paths. Control characters are escaped.
std::string usage_text(const scanner::Usage& usage, scanner::UsageOrder order,
                       std::optional<std::size_t> columns);

// RFC 4180 with a header line. Paths have the bytes they have, unless they are to be shown on a terminal.
// What is left out beyond a limit is left out here, too.
std::string usage_csv(const scanner::Usage& usage, bool for_terminal);

}  // namespace spoor::cli
