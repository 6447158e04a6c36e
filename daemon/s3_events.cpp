#include "daemon/s3_events.h"

#include <fmt/format.h>

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

constexpr std::size_t prefix_bytes_max = 1024;  // leaves room for a bucket and a key

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

// The deepest directory below `bucket` that holds the object whatever a store makes of a key that is no path:
// whether it follows a ".." or takes it for a name, and however it shortens a component.
std::string deepest_valid_ancestor(std::string_view bucket, std::string_view key) {
  std::vector<std::string_view> above;
  std::size_t bytes = bucket.size();
  std::size_t depth = 0;
  bool is_valid = true;
  for (tracker::ComponentCursor at(key); at.next();) {
    const std::string_view component = at.component();
    if (component.empty() || component == ".") continue;
    if (component == "..") {
      depth -= depth > 0 ? 1 : 0;
      above.resize(std::min(above.size(), depth));
      is_valid = false;
      continue;
    }
    ++depth;
    bytes += 1 + component.size();
    is_valid = is_valid && component.size() <= tracker::component_bytes_max &&
               component.find('\0') == std::string_view::npos && bytes <= tracker::path_bytes_max;
    if (is_valid) above.push_back(component);
  }
  return above.empty() ? std::string(bucket) : fmt::format("{}/{}", bucket, fmt::join(above, "/"));
}

// What of a key is the same whether it is URL-encoded or not: the directories before the first that may be
// encoded.
std::string_view unencoded_directories(std::string_view key) {
  key = key.substr(0, key.find_first_of("%+"));
  return key.substr(0, key.rfind('/') + 1);
}

// What the query says of all records.
struct Parameters {
  MarkKind kind = MarkKind::dir;
  std::string prefix;  // of each bucket's path; empty, or ends with a slash
};

// Turns records into marks.
class Marker {
 public:
  Marker(Parameters parameters, const tracker::NamespaceRules& rules)
      : parameters_(std::move(parameters)), rules_(rules) {}

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
    if (!mark({parameters_.prefix + *record.bucket, MarkKind::dir})) ++request_.ignored;
    return std::nullopt;
  }

  // Under each name that the object may have on the drives.
  std::optional<Problem> add_object(const S3Record& record, std::size_t index) {
    if (auto problem = bucket_problem(record, index)) return problem;
    if (!record.key) return s3_record_problem(index, "'s3.object.key' is missing, or no string");
    const std::string& key = *record.key;
    const std::string source = record.source.value_or("");
    const bool may_be_raw = source.starts_with("ceph:");  // RGW sends keys as they are
    const auto decoded = form_decoded(key);
    const bool is_directory = decoded.value_or(key).ends_with('/');
    Names names{parameters_.prefix + *record.bucket, is_directory ? MarkKind::dir : parameters_.kind};
    if (may_be_raw) names.add(key);
    if (decoded && !(may_be_raw && *decoded == key)) names.add(*decoded);
    if (!decoded && !may_be_raw) names.add_tree(unencoded_directories(key));
    if (decoded && is_directory && source.starts_with("minio:")) {
      names.add(decoded->substr(0, decoded->size() - 1).append(minio_directory_suffix));
    }
    mark_all(names, key);
    return std::nullopt;
  }

  // What is marked for an object.
  struct Names {
    std::string bucket;  // its path
    MarkKind kind;
    std::vector<tracker::Mark> marks = {};

    void add(std::string_view key) {
      auto path = tracker::normalise_path(fmt::format("{}/{}", bucket, key));
      const bool is_below_bucket = path && path->size() > bucket.size();
      if (!is_below_bucket) return add_tree(key);
      marks.push_back({*std::move(path), kind});
    }

    // For a key that is no path: what the object is called on the drives is not known.
    void add_tree(std::string_view key) {
      std::string path = deepest_valid_ancestor(bucket, key);
      const bool is_there = std::ranges::any_of(
          marks, [&](const tracker::Mark& mark) { return mark.kind == MarkKind::tree && mark.path == path; });
      if (!is_there) marks.push_back({std::move(path), MarkKind::tree});
    }
  };

  void mark_all(Names& names, std::string_view key) {
    std::uint64_t marked = 0;
    std::string tree;
    for (tracker::Mark& each : names.marks) {
      const std::string path = each.kind == MarkKind::tree ? each.path : "";
      if (!mark(std::move(each))) continue;
      ++marked;
      if (!path.empty()) tree = path;
    }
    if (marked == 0) {
      ++request_.ignored;
    } else {
      request_.further += marked - 1;
    }
    if (tree.empty() || request_.invalid_keys++ > 0) return;
    request_.invalid_key = tracker::printable(fmt::format("{}/{}", names.bucket, key));
    request_.invalid_key_mark = tracker::printable(tree);
  }

  // False where the rules take no notice of the path.
  bool mark(tracker::Mark mark) {
    if (rules_.ignores(mark.path)) return false;
    request_.marks.push_back(std::move(mark));
    return true;
  }

  const Parameters parameters_;
  const tracker::NamespaceRules& rules_;
  EventMarks request_;
};

boost::system::result<Parameters, Problem> parameters_of(const HttpRequest& request,
                                                         const tracker::DrivePaths& drive_paths) {
  if (auto unknown = unknown_parameter(request, {"kind", "prefix"})) return *std::move(unknown);
  Parameters parameters;
  const auto kind = tracker::parse_mark_kind(request.query_value("kind").value_or("dir"));
  if (!kind || *kind == MarkKind::tree)
    return Problem{400, "invalid_request", "'kind' must be \"dir\" or \"file\""};
  parameters.kind = *kind;
  if (const auto prefix = request.query_value("prefix")) {
    const auto path = tracker::normalise_path(*prefix);
    if (!path || path->size() > prefix_bytes_max) {
      return Problem{
          400, "invalid_request",
          fmt::format("'prefix' must be a path of at most {} bytes without '..'", prefix_bytes_max)};
    }
    if (auto refusal = drive_paths.refusal(*prefix, *path); !refusal.empty()) {
      return Problem{400, "invalid_request", "'prefix': " + refusal};
    }
    parameters.prefix = *path + '/';
  }
  return parameters;
}

}  // namespace

boost::system::result<EventMarks, Problem> parse_s3_events(const HttpRequest& request,
                                                           const tracker::NamespaceRules& rules,
                                                           const tracker::DrivePaths& drive_paths) {
  if (auto refused = refuse_content_encoding(request)) return *std::move(refused);
  // Older RGW says none.
  if (!has_media_type(request, "") && !has_media_type(request, "application/json")) {
    return Problem{415, "unsupported_media_type",
                   fmt::format("the Content-Type '{}' is not known here; send application/json",
                               tracker::printable(request.content_type))};
  }
  auto parameters = parameters_of(request, drive_paths);
  if (!parameters) return parameters.error();
  Marker marker(*std::move(parameters), rules);
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
