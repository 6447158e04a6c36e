#include <fmt/format.h>

#include <algorithm>
#include <boost/system/result.hpp>
#include <boost/url/pct_string_view.hpp>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "daemon/api/api_message.h"
#include "daemon/api/mark_batch.h"
#include "daemon/api/s3_notification.h"
#include "tracker/paths/drive_paths.h"
#include "tracker/paths/path.h"

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

// By the part before the first colon, so that a new kind of creation is one. Whether an event changes what is
// on the drives depends on the store and its settings: everything that it might change is marked.
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

// Whether the key has a component that is part of a path.
bool names_something(std::string_view key) {
  for (tracker::ComponentCursor at(key); at.next();) {
    if (!at.component().empty() && at.component() != ".") return true;
  }
  return false;
}

// The deepest directory below `bucket` that holds the object however a store handles a key that is not a
// path: whether it follows a ".." or takes it for a name, and however it shortens a component.
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

// What the query gives for all records.
struct Parameters {
  MarkKind kind = MarkKind::dir;
  std::string prefix;  // of each bucket's path; empty, or ends with a slash
};

// What is marked for an object.
class ObjectMarks {
 public:
  // `bucket` is its path.
  ObjectMarks(MarkBatch& batch, std::string bucket, MarkKind kind)
      : batch_(batch), bucket_(std::move(bucket)), kind_(kind) {}

  void add(std::string_view key) {
    if (!names_something(key)) return add_tree(key);
    const auto added = batch_.add(fmt::format("{}/{}", bucket_, key), kind_);
    if (!added) return add_tree(key);
    if (*added) ++marked_;
  }

  // For a key that is not a path: the name of the object on the drives is not known.
  void add_tree(std::string_view key) {
    std::string path = deepest_valid_ancestor(bucket_, key);
    if (path == tree_ || !batch_.add(path, MarkKind::tree).value()) return;
    ++marked_;
    tree_ = std::move(path);
  }

  void count(std::string_view key) const {
    MarkBatch::Counts& counts = batch_.counts();
    if (marked_ == 0) {
      ++counts.ignored;
    } else {
      counts.further += marked_ - 1;
    }
    if (tree_.empty() || counts.invalid_keys++ > 0) return;
    counts.invalid_key = base::printable(fmt::format("{}/{}", bucket_, key));
    counts.invalid_key_mark = base::printable(tree_);
  }

 private:
  MarkBatch& batch_;
  const std::string bucket_;
  const MarkKind kind_;
  std::uint64_t marked_ = 0;
  std::string tree_;  // the last one marked
};

// Turns records into marks.
class Marker {
 public:
  Marker(Parameters parameters, MarkBatch& batch) : parameters_(std::move(parameters)), batch_(batch) {}

  // The problem of the record, if it has one.
  std::optional<Problem> add(const S3Record& record, std::size_t index) {
    if (!record.event) return s3_record_problem(index, "'eventName' is missing or not a string");
    MarkBatch::Counts& counts = batch_.counts();
    switch (effect_of(*record.event)) {
      case Effect::none:
        ++counts.ignored;
        return std::nullopt;
      case Effect::unknown:
        ++counts.ignored;
        if (counts.unknown_events++ == 0) counts.unknown_event = base::printable(*record.event);
        return std::nullopt;
      case Effect::bucket:
        if (record.key.value_or("").empty()) return add_bucket(record, index);
        break;
      case Effect::object:
        break;
    }
    return add_object(record, index);
  }

 private:
  static std::optional<Problem> bucket_problem(const S3Record& record, std::size_t index) {
    if (!record.bucket) return s3_record_problem(index, "'s3.bucket.name' is missing or not a string");
    const auto path = tracker::normalise_path(*record.bucket);
    if (!path) return path_problem(path.error(), *record.bucket, index);
    if (*path == *record.bucket && path->find('/') == std::string::npos) return std::nullopt;
    return Problem{
        400, "invalid_path",
        fmt::format("Records[{}]: '{}' is not a bucket name", index, base::printable(*record.bucket)), index,
        base::printable(*record.bucket)};
  }

  std::optional<Problem> add_bucket(const S3Record& record, std::size_t index) {
    if (auto problem = bucket_problem(record, index)) return problem;
    if (!batch_.add(parameters_.prefix + *record.bucket, MarkKind::dir).value()) ++batch_.counts().ignored;
    return std::nullopt;
  }

  // Under each name that the object may have on the drives.
  std::optional<Problem> add_object(const S3Record& record, std::size_t index) {
    if (auto problem = bucket_problem(record, index)) return problem;
    if (!record.key) return s3_record_problem(index, "'s3.object.key' is missing or not a string");
    const std::string& key = *record.key;
    const std::string source = record.source.value_or("");
    const bool may_be_raw = source.starts_with("ceph:");  // RGW sends keys as they are
    const auto decoded = form_decoded(key);
    const bool is_directory = decoded.value_or(key).ends_with('/');
    ObjectMarks marks(batch_, parameters_.prefix + *record.bucket,
                      is_directory ? MarkKind::dir : parameters_.kind);
    if (may_be_raw) marks.add(key);
    if (decoded && !(may_be_raw && *decoded == key)) marks.add(*decoded);
    if (!decoded && !may_be_raw) marks.add_tree(unencoded_directories(key));
    if (decoded && is_directory && source.starts_with("minio:")) {
      marks.add(decoded->substr(0, decoded->size() - 1).append(minio_directory_suffix));
    }
    marks.count(key);
    return std::nullopt;
  }

  const Parameters parameters_;
  MarkBatch& batch_;
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

std::optional<Problem> read_s3_events(const HttpRequest& request, MarkBatch& batch) {
  if (auto refused = refuse_content_encoding(request)) return refused;
  // Older RGW sends no Content-Type.
  if (!has_media_type(request, "") && !has_media_type(request, "application/json")) {
    return Problem{415, "unsupported_media_type",
                   fmt::format("the Content-Type '{}' is not known here; send application/json",
                               base::printable(request.content_type))};
  }
  auto parameters = parameters_of(request, batch.drive_paths());
  if (!parameters) return parameters.error();
  Marker marker(*std::move(parameters), batch);
  const auto notification = read_s3_notification(
      request.body, [&](const S3Record& record, std::size_t index) { return marker.add(record, index); });
  if (!notification) return notification.error();
  if (notification->has_records) return std::nullopt;
  if (notification->event != "s3:TestEvent") return Problem{400, "invalid_request", "'Records' is missing"};
  ++batch.counts().ignored;
  return std::nullopt;
}

}  // namespace spoor::daemon
