// The text and CSV output of `spoor usage`.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "scanner/usage/usage_limits.h"
#include "scanner/usage/usage_query.h"

namespace spoor::cli {

// One line for each directory. With the columns of a terminal: a tree of names, with bars for the share of
// the whole. Without: whole paths. Control characters are escaped.
// Directories whose figures do not contain every change are labelled; growth is "about" so much where a node
// of the cluster did not report it. With `now`: also how old the totals are.
enum class UsageScope { node, cluster };
std::string usage_text(const scanner::Usage& usage, scanner::UsageOrder order,
                       std::optional<std::size_t> columns, UsageScope scope = UsageScope::node,
                       std::optional<base::WallTime> now = {});

// One line for each owner, with the names that this machine gives them.
std::string owners_text(const scanner::Usage& usage);

// RFC 4180 with a header line, with the rest of the owners as a line without ids.
std::string owners_csv(const scanner::Usage& usage, bool with_header = true);

// RFC 4180, with a header line or without. Paths are unchanged bytes, or escaped with `for_terminal`. Does
// not list the rest of a directory.
std::string usage_csv(const scanner::Usage& usage, bool for_terminal, bool with_header = true);
std::string usage_csv_header(const scanner::Usage& usage);
std::string usage_csv_line(const scanner::Usage& usage, const scanner::UsageEntry& entry, bool for_terminal);

// The series of GET /v1/usage/history: a line for each point; on a terminal of so many columns, a curve of
// the sizes before. Throws a json::exception if it is none.
std::string history_text(const nlohmann::ordered_json& history, std::optional<std::size_t> columns);

// A sentence without a full stop; empty if it is not exceeded.
std::string exceeded_limit(const scanner::LimitState& state);

// One line for each that is exceeded, of the directory, one above or one below it: of the cluster, or else of
// this node.
std::string exceeded_limits(const std::vector<scanner::LimitState>& states, std::string_view path,
                            bool of_cluster);

}  // namespace spoor::cli
