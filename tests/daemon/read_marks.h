// What a source of marks reads from a request.
#pragma once

#include <boost/system/result.hpp>
#include <optional>
#include <span>
#include <vector>

#include "daemon/api/mark_batch.h"
#include "daemon/http/http_message.h"

namespace spoor::daemon {

struct ReadMarks : MarkBatch::Counts {
  std::vector<tracker::Mark> marks;
};

inline ReadMarks take_marks(MarkBatch& batch) {
  ReadMarks read{batch.counts(), {}};
  batch.hand_over([&](std::span<const tracker::Mark> marks) {
    read.marks.insert(read.marks.end(), marks.begin(), marks.end());
  });
  return read;
}

inline boost::system::result<ReadMarks, Problem> read_marks(
    std::optional<Problem> (*source)(const HttpRequest&, MarkBatch&), const HttpRequest& request,
    const tracker::NamespaceRules& rules, const tracker::DrivePaths& drive_paths) {
  MarkBatch batch(rules, drive_paths);
  if (auto problem = source(request, batch)) return *std::move(problem);
  return take_marks(batch);
}

}  // namespace spoor::daemon
