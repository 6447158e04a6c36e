#include "daemon/api/mark_batch.h"

#include <simdjson.h>

#include <cstring>
#include <utility>

#include "tracker/errors.h"
#include "tracker/filter/mark_cursor.h"

namespace spoor::daemon {
namespace {

constexpr std::size_t marks_at_a_time = 256;

// Precedes each path: its length, and in the two lowest bits its kind.
using Header = std::uint16_t;
constexpr unsigned kind_bits = 2;
static_assert(tracker::path_bytes_max < 1U << (16 - kind_bits));

void append(std::string& paths, std::string_view path, tracker::MarkKind kind) {
  const auto header = static_cast<Header>(path.size() << kind_bits | static_cast<std::size_t>(kind));
  char bytes[sizeof header];
  std::memcpy(bytes, &header, sizeof header);
  paths.append(bytes, sizeof bytes).append(path);
}

}  // namespace

MarkBatch::MarkBatch(const tracker::NamespaceRules& rules, const tracker::DrivePaths& drive_paths,
                     DriveId drive_id)
    : rules_(rules),
      drive_paths_(drive_paths),
      drive_id_(std::move(drive_id)),
      json_parser_(std::make_unique<simdjson::dom::parser>()) {}

MarkBatch::~MarkBatch() = default;

base::Result<bool> MarkBatch::add(std::string_view raw, tracker::MarkKind kind, Absolute absolute) {
  std::string normalised;
  if (!tracker::is_normalised(raw)) {  // most paths are
    auto path = tracker::normalise_path(raw);
    if (!path) return path.error();
    if (absolute == Absolute::below_a_drive && raw.starts_with('/')) {
      path = drive_paths_.below_drive(raw, *path);
      if (!path) return path.error();
    } else if (auto refusal = drive_paths_.refusal(raw, *path); !refusal.empty()) {
      return base::Error(tracker::Errc::invalid_path, std::move(refusal));
    }
    raw = normalised = *std::move(path);
  }
  if (rules_.ignores(raw)) return false;
  const std::string on_drive = drive_.empty() ? std::string() : tracker::drive_mark_path(drive_, raw);
  append(paths_, on_drive.empty() ? raw : on_drive, kind);
  return true;
}

void MarkBatch::hand_over(const Take& take) {
  std::size_t filled = 0;
  for (std::string_view rest = paths_; !rest.empty();) {
    Header header = 0;
    std::memcpy(&header, rest.data(), sizeof header);
    const std::string_view path = rest.substr(sizeof header, header >> kind_bits);
    rest.remove_prefix(sizeof header + path.size());
    if (filled == marks_.size()) marks_.emplace_back();
    marks_[filled].path.assign(path);
    marks_[filled++].kind = static_cast<tracker::MarkKind>(header & ((1U << kind_bits) - 1));
    if (filled == marks_at_a_time) take(std::span(marks_).first(std::exchange(filled, 0)));
  }
  take(std::span(marks_).first(filled));
}

void MarkBatch::clear() {
  counts_ = {};
  drive_.clear();
  paths_.clear();
  if (paths_.capacity() > small_body_bytes) paths_ = {};
  if (json_parser_->capacity() > small_body_bytes) *json_parser_ = simdjson::dom::parser();
}

}  // namespace spoor::daemon
