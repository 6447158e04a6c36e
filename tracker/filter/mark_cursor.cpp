#include "tracker/filter/mark_cursor.h"

#include <algorithm>

#include "tracker/paths/path.h"

namespace spoor::tracker {
namespace {

std::string_view first_component(std::string_view path) { return path.substr(0, path.find('/')); }

}  // namespace

MarkCursor::MarkCursor(const MarkSet& marks)
    : marks_(&marks),
      below_(marks.tree_marks().begin()),
      below_end_(marks.tree_marks().end()),
      groups_(marks.groups()),
      covered_(marks.tree_marks().covers("")) {
  if (covered_) below_ = below_end_;
}

void MarkCursor::descend(std::string_view name) {
  if (leads_to_tree_mark()) descend_tree_marks(name);
  name_at_ += name.size() + 1;
  if (groups_ == 0) return;  // nor has anything below a mark
  hasher_.descend(name);
  groups_ = marks_->groups_that_may_contain(hasher_.hash(), groups_);
}

void MarkCursor::descend_tree_marks(std::string_view name) {
  const auto from_name = [this](const std::string& mark) { return std::string_view(mark).substr(name_at_); };
  below_ = std::partition_point(
      below_, below_end_, [&](const std::string& mark) { return first_component(from_name(mark)) < name; });
  covered_ = below_ != below_end_ && from_name(*below_) == name;
  if (covered_) ++below_;
  below_end_ = std::partition_point(
      below_, below_end_, [&](const std::string& mark) { return first_component(from_name(mark)) == name; });
}

std::string drive_mark_path(std::string_view drive, std::string_view path) {
  std::string below(drive_marks_top);
  below.append("/").append(drive).append("/").append(path);
  const bool is_possible =
      !drive.empty() && drive.find('/') == std::string_view::npos && is_normalised(below);
  return is_possible ? below : std::string();
}

DriveCursor::DriveCursor(const MarkCursor& root, std::string_view drive) : all_(root), own_(root) {
  own_.descend(drive_marks_top);
  if (drive.empty()) {
    is_covered_ = own_.may_be_dirty();
  } else {
    own_.descend(drive);
  }
}

}  // namespace spoor::tracker
