#include "daemon/s3_events.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/url/pct_string_view.hpp>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/api_message.h"
#include "daemon/mark_request.h"
#include "daemon/s3_notification.h"
#include "tracker/path.h"

namespace spoor::daemon {
namespace {

using tracker::MarkKind;

// How MinIO names the directory of an object whose key ends with a slash.
constexpr std::string_view minio_directory_suffix = "__XLDIR__";

enum class Effect { none, object, bucket, unknown };

struct Family {
  std::string_view name;
  Effect effect;
};

// By what stands before the first colon, so that a new kind of creation is one. Whether an event changes
// what is on the drives depends on the store and its settings: whatever it might change is marked.
constexpr Family families[] = {
    {"ObjectCreated", Effect::object},
    {"ObjectRemoved", Effect::object},
    {"ObjectRestore", Effect::object},
    {"ObjectTagging", Effect::object},
    {"ObjectAcl", Effect::object},
    {"ObjectTransition", Effect::object},
    {"ObjectLifecycle", Effect::object},
    {"ObjectSynced", Effect::object},
    {"LifecycleExpiration", Effect::object},
    {"LifecycleTransition", Effect::object},
    {"LifecycleDelMarkerExpiration", Effect::object},
    {"IntelligentTiering", Effect::object},
    {"Replication", Effect::object},
    {"ReducedRedundancyLostObject", Effect::object},
    {"Scanner", Effect::object},
    {"BucketCreated", Effect::bucket},
    {"BucketRemoved", Effect::bucket},
    {"ObjectAccessed", Effect::none},
    {"TestEvent", Effect::none},
};

Effect effect_of(std::string_view event) {
  if (event.starts_with("s3:")) event.remove_prefix(3);
  const std::string_view name = event.substr(0, event.find(':'));
  const auto* const found = std::ranges::find(families, name, &Family::name);
  return found == std::end(families) ? Effect::unknown : found->effect;
}

std::optional<std::string> form_decoded(std::string_view text) {
  const auto checked = boost::urls::make_pct_string_view(text);
  if (!checked) return std::nullopt;
  return checked->decode({true});  // `+` is a space
}

// Turns records into marks.
class Marker {
 public:
  Marker(MarkKind kind, const tracker::NamespaceRules& rules) : kind_(kind), rules_(rules) {}

  // The problem of the record, if it has one.
  std::optional<Problem> add(const S3Record& record, std::size_t index) {
    if (!record.event) return s3_record_problem(index, "'eventName' is missing, or no string");
    switch (effect_of(*record.event)) {
      case Effect::none:
        ++request_.ignored;
        return std::nullopt;
      case Effect::unknown:
        ++request_.ignored;
        if (request_.unknown_events++ == 0) request_.unknown_event = tracker::printable(*record.event);
        return std::nullopt;
      case Effect::bucket:
        if (record.key.value_or("").empty()) return add_bucket(record, index);
        break;
      case Effect::object:
        break;
    }
    return add_object(record, index);
  }

  void ignore() { ++request_.ignored; }

  EventMarks take() { return std::move(request_); }

 private:
  static std::optional<Problem> bucket_problem(const S3Record& record, std::size_t index) {
    if (!record.bucket) return s3_record_problem(index, "'s3.bucket.name' is missing, or no string");
    const auto path = tracker::normalise_path(*record.bucket);
    if (!path) return path_problem(path.error(), *record.bucket, index);
    if (*path == *record.bucket && path->find('/') == std::string::npos) return std::nullopt;
    return Problem{
        400, "invalid_path",
        fmt::format("Records[{}]: '{}' is no name of a bucket", index, tracker::printable(*record.bucket)),
        index, tracker::printable(*record.bucket)};
  }

  std::optional<Problem> add_bucket(const S3Record& record, std::size_t index) {
    if (auto problem = bucket_problem(record, index)) return problem;
    if (!mark(*record.bucket, MarkKind::dir)) ++request_.ignored;
    return std::nullopt;
  }

  // Under each name that the object may have on the drives.
  std::optional<Problem> add_object(const S3Record& record, std::size_t index) {
    if (auto problem = bucket_problem(record, index)) return problem;
    if (!record.key) return s3_record_problem(index, "'s3.object.key' is missing, or no string");
    const std::string source = record.source.value_or("");
    const bool may_be_raw = source.starts_with("ceph:");  // RGW sends keys as they are
    const auto decoded = form_decoded(*record.key);
    if (!decoded && !may_be_raw) {
      return Problem{400, "invalid_path",
                     fmt::format("Records[{}]: the key is not URL-encoded: two hexadecimal digits must stand "
                                 "behind each '%'",
                                 index),
                     index, tracker::printable(*record.key)};
    }
    Names names{*record.bucket, index};
    if (may_be_raw) names.add(*record.key);
    if (decoded && !(may_be_raw && *decoded == *record.key)) names.add(*decoded);
    if (names.paths.empty()) return names.problem;
    const bool is_directory = decoded.value_or(*record.key).ends_with('/');
    if (is_directory && source.starts_with("minio:")) {
      names.add(decoded->substr(0, decoded->size() - 1).append(minio_directory_suffix));
    }
    mark_all(names, is_directory ? MarkKind::dir : kind_);
    return std::nullopt;
  }

  // The paths of an object, and why one of its names is none.
  struct Names {
    std::string_view bucket;
    std::size_t index;
    std::vector<std::string> paths = {};
    std::optional<Problem> problem = {};

    void add(const std::string& key) {
      const std::string raw = fmt::format("{}/{}", bucket, key);
      auto path = tracker::normalise_path(raw);
      if (path && path->size() > bucket.size()) {
        paths.push_back(*std::move(path));
      } else if (path) {
        problem = Problem{400, "invalid_path", fmt::format("Records[{}]: the key names no object", index),
                          index, tracker::printable(raw)};
      } else {
        problem = path_problem(path.error(), raw, index);
      }
    }
  };

  void mark_all(Names& names, MarkKind kind) {
    std::uint64_t marked = 0;
    for (std::string& path : names.paths) {
      if (mark(std::move(path), kind)) ++marked;
    }
    if (marked == 0) {
      ++request_.ignored;
    } else {
      request_.further += marked - 1;
    }
  }

  // False where the rules take no notice of the path.
  bool mark(std::string path, MarkKind kind) {
    if (rules_.ignores(path)) return false;
    request_.marks.push_back({std::move(path), kind});
    return true;
  }

  const MarkKind kind_;
  const tracker::NamespaceRules& rules_;
  EventMarks request_;
};

boost::system::result<MarkKind, Problem> kind_of(const HttpRequest& request) {
  if (auto unknown = unknown_parameter(request, {"kind"})) return *std::move(unknown);
  const auto kind = tracker::parse_mark_kind(request.query_value("kind").value_or("dir"));
  if (kind && *kind != MarkKind::tree) return *kind;
  return Problem{400, "invalid_request", "'kind' must be \"dir\" or \"file\""};
}

}  // namespace

boost::system::result<EventMarks, Problem> parse_s3_events(const HttpRequest& request,
                                                           const tracker::NamespaceRules& rules) {
  if (auto refused = refuse_content_encoding(request)) return *std::move(refused);
  // Older RGW says none.
  if (!has_media_type(request, "") && !has_media_type(request, "application/json")) {
    return Problem{415, "unsupported_media_type",
                   fmt::format("the Content-Type '{}' is not known here; send application/json",
                               tracker::printable(request.content_type))};
  }
  const auto kind = kind_of(request);
  if (!kind) return kind.error();
  Marker marker(*kind, rules);
  const auto notification = read_s3_notification(
      request.body, [&](const S3Record& record, std::size_t index) { return marker.add(record, index); });
  if (!notification) return notification.error();
  if (!notification->has_records) {
    if (notification->event != "s3:TestEvent") return Problem{400, "invalid_request", "'Records' is missing"};
    marker.ignore();
  }
  return marker.take();
}

}  // namespace spoor::daemon
