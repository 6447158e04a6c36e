// S3 event notifications, against what a document of the whole body says.
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/api/mark_batch.h"
#include "tests/fuzz/fuzz_support.h"
#include "tracker/paths/path.h"

namespace spoor::daemon {
namespace {

using fuzz::require;
using nlohmann::json;

struct Marked : MarkBatch::Counts {
  std::vector<tracker::Mark> marks;
};

std::optional<std::string> decoded(const std::string& key) {
  std::string text;
  for (std::size_t at = 0; at < key.size(); ++at) {
    if (key[at] != '%') {
      text += key[at] == '+' ? ' ' : key[at];
      continue;
    }
    if (key.size() - at < 3) return std::nullopt;
    const std::string digits = key.substr(at + 1, 2);
    for (const char digit : digits) {
      if (std::isxdigit(static_cast<unsigned char>(digit)) == 0) return std::nullopt;
    }
    text += static_cast<char>(std::stoi(digits, nullptr, 16));
    at += 2;
  }
  return text;
}

// By itself, or where it is no path, by a tree of its bucket.
bool is_marked(const Marked& marked, const std::string& raw) {
  const auto path = tracker::normalise_path(raw);
  const std::string bucket = raw.substr(0, raw.find('/'));
  if (tracker::NamespaceRules().ignores(path ? *path : bucket)) return true;
  for (const tracker::Mark& mark : marked.marks) {
    const bool is_tree = mark.kind == tracker::MarkKind::tree;
    if (!path && is_tree && (mark.path == bucket || mark.path.starts_with(bucket + '/'))) return true;
    if (path && (mark.path == *path || mark.path.starts_with(*path + '/'))) return true;
    if (path && is_tree && path->starts_with(mark.path + '/')) return true;
  }
  return false;
}

void check_record(const Marked& marked, const json& record) {
  std::string event = record["eventName"];
  if (event.starts_with("s3:")) event = event.substr(3);
  if (!event.starts_with("ObjectCreated:") && !event.starts_with("ObjectRemoved:")) return;
  const std::string bucket = record["s3"]["bucket"]["name"];
  const std::string key = record["s3"]["object"]["key"];
  const auto name = decoded(key);
  if (name) require(is_marked(marked, bucket + '/' + *name), "what was created or removed is marked");
  const auto source = record.find("eventSource");
  if (source != record.end() && source->is_string() && source->get<std::string>().starts_with("ceph:")) {
    require(is_marked(marked, bucket + '/' + key), "a key that is not encoded is marked as it is");
  } else if (!name) {
    require(is_marked(marked, bucket + '/' + key), "what lies above a key with a broken escape is marked");
  }
}

bool is_utf8(std::string_view text) {
  try {
    static_cast<void>(json(text).dump());
    return true;
  } catch (const json::exception&) {
    return false;
  }
}

void check(std::string_view body) {
  HttpRequest request;
  request.content_type = "application/json";
  request.body = body;
  const tracker::NamespaceRules rules;
  const tracker::DrivePaths drive_paths;
  MarkBatch batch(rules, drive_paths);
  const auto problem = [&] {
    const fuzz::MemoryBound bound(body.size());
    return read_s3_events(request, batch);
  }();
  if (problem) {
    require(problem->status == 400, "what is refused is the sender's fault");
    return;
  }
  Marked marked{batch.counts(), {}};
  batch.hand_over([&](std::span<const tracker::Mark> marks) {
    marked.marks.insert(marked.marks.end(), marks.begin(), marks.end());
  });
  for (const tracker::Mark& mark : marked.marks) {
    require(tracker::is_normalised(mark.path) && !mark.path.empty(), "marks have normalised paths");
    require(mark.kind != tracker::MarkKind::file, "marks are those of objects, or trees for what is no path");
  }
  if (!is_utf8(body)) return;  // its other bytes are repaired before it is read, unlike by the parser below
  const json document = json::parse(body, nullptr, false);
  require(document.is_object(), "what is accepted is an object");
  const auto records = document.find("Records");
  const std::size_t events = records == document.end() ? 1 : records->size();
  require(marked.marks.size() - marked.further + marked.ignored == events, "every event is counted once");
  require(marked.unknown_events <= marked.ignored, "what is unknown is ignored");
  require(marked.invalid_keys <= events - marked.ignored, "an event whose key is no path is marked");
  if (records == document.end()) return;
  for (const json& record : *records) check_record(marked, record);
}

}  // namespace
}  // namespace spoor::daemon

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spoor::daemon::check(spoor::fuzz::text_of(data, size));
  return 0;
}
