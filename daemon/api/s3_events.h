#pragma once

#include <optional>

#include "daemon/api/mark_batch.h"
#include "daemon/http/http_message.h"

namespace spoor::daemon {

// Adds the marks of the body of POST /v1/events/s3, an S3 event notification as MinIO, Ceph RGW and AWS send
// it.
//
// A record that is no event makes the whole request a problem, which names the record by its index. Every
// event that may have changed anything is marked, whichever of its details this version knows. No event is a
// problem for its key: the store has acknowledged the change already, and would repeat the event forever. A
// `prefix` on a drive of this node is refused.
std::optional<Problem> read_s3_events(const HttpRequest& request, MarkBatch& batch);

}  // namespace spoor::daemon
