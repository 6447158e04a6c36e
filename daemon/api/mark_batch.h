// The marks of one request, from any source: the one place where paths to be marked are normalised and held
// against the namespace rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "daemon/http/http_message.h"
#include "tracker/paths/drive_paths.h"
#include "tracker/paths/namespace_rules.h"
#include "tracker/paths/path.h"

namespace simdjson::dom {
class parser;
}

namespace spoor::daemon {

// Collects marks until all of a request is read, since it is marked as a whole or not at all. Its memory, and
// that of the JSON parser, is kept from one request to the next.
//
// Not thread-safe.
class MarkBatch {
 public:
  // What a source counts besides its marks.
  struct Counts {
    std::uint64_t further = 0;  // marks beyond the first for the same event
    std::uint64_t ignored = 0;  // paths that the namespace rules exclude, and events that mark nothing

    // Of those ignored: S3 events of an unknown name, and the name of the first, printable.
    std::uint64_t unknown_events = 0;
    std::string unknown_event = {};

    // S3 events whose key is not a path, so that the deepest directory above it was marked as a tree; the
    // first such key with its bucket, and that directory, printable.
    std::uint64_t invalid_keys = 0;
    std::string invalid_key = {};
    std::string invalid_key_mark = {};
  };

  // Receives some of the marks.
  using Take = std::function<void(std::span<const tracker::Mark>)>;
  // The id of the drive with this path; empty: not known. Thread-safe.
  using DriveId = std::function<std::string(const std::string& drive)>;

  // References must outlive it.
  MarkBatch(const tracker::NamespaceRules& rules, const tracker::DrivePaths& drive_paths,
            DriveId drive_id = {});
  ~MarkBatch();
  MarkBatch(const MarkBatch&) = delete;
  MarkBatch& operator=(const MarkBatch&) = delete;

  // What is done with a path that begins with `/`.
  enum class Absolute {
    allowed,       // the `/` is ignored, unless the path is on a drive of this node: then it is refused
    below_a_drive  // the path below its drive is marked; it is refused if it is on none
  };

  // Adds a mark. Returns false if the namespace rules exclude the path. Fails as normalise_path() does, and
  // with Errc::invalid_path as `absolute` says.
  base::Result<bool> add(std::string_view raw, tracker::MarkKind kind, Absolute absolute = Absolute::allowed);

  // The marks that follow name this drive of the node (tracker/filter/mark_cursor.h), by its path. If its id
  // is not known, they name none.
  void name_drive(std::string_view path) {
    drive_ = drive_id_ ? drive_id_(std::string(path)) : std::string();
  }

  // Hands over all marks in their order, some at a time; at least once, even if there are none.
  void hand_over(const Take& take);

  // Empties it for the next request. Of the memory, what small requests need is kept.
  void clear();

  Counts& counts() { return counts_; }
  const tracker::DrivePaths& drive_paths() const { return drive_paths_; }
  simdjson::dom::parser& json_parser() { return *json_parser_; }

  // Reading a body of up to so many bytes takes little memory, which is kept; a larger one up to fourteen
  // times its size, until it is read.
  static constexpr std::size_t small_body_bytes = std::size_t{256} << 10U;

 private:
  const tracker::NamespaceRules& rules_;
  const tracker::DrivePaths& drive_paths_;
  const DriveId drive_id_;
  std::string drive_;  // empty: the marks name none
  const std::unique_ptr<simdjson::dom::parser> json_parser_;
  std::string paths_;                 // each behind its Header: a body may hold millions
  std::vector<tracker::Mark> marks_;  // those handed over together; their strings are used again
  Counts counts_;
};

// Adds the marks of the body of POST /v1/marks, in each of its forms. One bad path makes the whole request a
// problem. Uses the body's spare capacity, if there is some.
std::optional<Problem> read_mark_request(const HttpRequest& request, MarkBatch& batch);

// Adds the marks of the body of POST /v1/events/s3, an S3 event notification as MinIO, Ceph RGW and AWS send
// it.
//
// A record that is no event makes the whole request a problem, which names the record by its index. Every
// event that may have changed anything is marked, whichever of its details this version knows. No event is a
// problem for its key: the store has acknowledged the change already, and would repeat the event forever. A
// `prefix` on a drive of this node is refused.
std::optional<Problem> read_s3_events(const HttpRequest& request, MarkBatch& batch);

}  // namespace spoor::daemon
