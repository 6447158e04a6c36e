// The members of an S3 event notification that marks are made from.
#pragma once

#include <boost/system/result.hpp>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/http/http_message.h"

namespace spoor::daemon {

// One of `Records`; nothing for a member that is missing or not a string.
struct S3Record {
  std::optional<std::string> event;   // eventName
  std::optional<std::string> source;  // eventSource
  std::optional<std::string> bucket;  // s3.bucket.name
  std::optional<std::string> key;     // s3.object.key, unchanged
};

struct S3Notification {
  bool has_records = false;
  std::string event;  // `Event`, of the message with which AWS tests a configuration
};

// Receives each record and its index; returns its problem, which ends the reading.
using OnS3Record = std::function<std::optional<Problem>(const S3Record&, std::size_t)>;

// Reads the body without a document in memory. Unknown members are skipped, with any value; a known one must
// not be given twice: which of the two is meant would not be known.
boost::system::result<S3Notification, Problem> read_s3_notification(std::string_view body,
                                                                    const OnS3Record& on_record);

// The problem that a record is invalid.
Problem s3_record_problem(std::size_t index, std::string_view what);

}  // namespace spoor::daemon
