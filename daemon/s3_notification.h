// What an S3 event notification says, in as far as it is of interest here.
#pragma once

#include <boost/system/result.hpp>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/problem.h"

namespace spoor::daemon {

// One of `Records`; nothing where the member is not there, or no string.
struct S3Record {
  std::optional<std::string> event;   // eventName
  std::optional<std::string> source;  // eventSource
  std::optional<std::string> bucket;  // s3.bucket.name
  std::optional<std::string> key;     // s3.object.key, as it stands there
};

struct S3Notification {
  bool has_records = false;
  std::string event;  // `Event`, of the message by which AWS tries out a configuration
};

// Told of each record, and its place among all; gives its problem, which ends the reading.
using OnS3Record = std::function<std::optional<Problem>(const S3Record&, std::size_t)>;

// Reads the body as it comes, without a document in memory. Members that are of no interest are skipped,
// whatever they hold; of those that are, none may come twice: it would be open which one is meant.
boost::system::result<S3Notification, Problem> read_s3_notification(std::string_view body,
                                                                    const OnS3Record& on_record);

// The problem that a record is not as it should be.
Problem s3_record_problem(std::size_t index, std::string_view what);

}  // namespace spoor::daemon
