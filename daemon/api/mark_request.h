#pragma once

#include <optional>

#include "daemon/api/mark_batch.h"
#include "daemon/http/http_message.h"

namespace spoor::daemon {

// Adds the marks of the body of POST /v1/marks, in each of its forms. One bad path makes the whole request a
// problem. Uses the body's spare capacity, if there is some.
std::optional<Problem> read_mark_request(const HttpRequest& request, MarkBatch& batch);

}  // namespace spoor::daemon
