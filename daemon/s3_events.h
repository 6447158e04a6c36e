// The body of POST /v1/events/s3, an S3 event notification as MinIO, Ceph RGW and AWS send it, as marks.
#pragma once

#include <boost/system/result.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/http_message.h"
#include "daemon/problem.h"
#include "tracker/drive_paths.h"
#include "tracker/namespace_rules.h"
#include "tracker/path.h"

namespace spoor::daemon {

struct EventMarks {
  std::vector<tracker::Mark> marks;
  std::uint64_t further = 0;  // of these, made for a path that another one of them stands for already
  std::uint64_t ignored = 0;  // paths that the namespace rules take no notice of, events that mark nothing

  // Of those ignored: events that nobody here knows, and the name of the first, fit for a message.
  std::uint64_t unknown_events = 0;
  std::string unknown_event = {};

  // Events whose key is no path, so that the deepest directory above it was marked as a tree; the first such
  // key with its bucket, and that directory, fit for a message.
  std::uint64_t invalid_keys = 0;
  std::string invalid_key = {};
  std::string invalid_key_mark = {};
};

// All or nothing: one record that is no event makes the whole request a problem, which names it by its index.
// Every event that may have changed anything is marked, whichever of its details this version knows. No event
// is a problem for its key: its sender has acknowledged the change already, and would repeat the event for
// ever.
// A `prefix` on a drive of this node is refused.
boost::system::result<EventMarks, Problem> parse_s3_events(const HttpRequest& request,
                                                           const tracker::NamespaceRules& rules,
                                                           const tracker::DrivePaths& drive_paths = {});

}  // namespace spoor::daemon
