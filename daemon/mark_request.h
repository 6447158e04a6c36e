// The body of POST /v1/marks, in each of its forms, as marks: the one place where paths from outside
// are normalised and filtered.
#pragma once

#include <boost/system/result.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "daemon/http_message.h"
#include "daemon/problem.h"
#include "tracker/namespace_rules.h"
#include "tracker/path.h"

namespace spoor::daemon {

struct MarkRequest {
  std::vector<tracker::Mark> marks;
  std::uint64_t ignored = 0;  // paths that the namespace rules take no notice of
};

// All or nothing: one bad path makes the whole request a problem.
boost::system::result<MarkRequest, Problem> parse_mark_request(const HttpRequest& request,
                                                               const tracker::NamespaceRules& rules);

// The problem that a path, the `index`th of its request, could not be normalised.
Problem path_problem(const base::Error& error, std::string_view raw, std::size_t index);

}  // namespace spoor::daemon
