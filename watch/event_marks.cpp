#include "watch/event_marks.h"

#include <sys/fanotify.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "peer/http/watch_report.h"
#include "tracker/storage/drive_registry.h"

namespace spoor::watch {
namespace {

// Of one mark in a set, beside its text.
constexpr std::size_t mark_bytes = 96;

constexpr std::uint64_t content = FAN_MODIFY | FAN_CLOSE_WRITE;

}  // namespace

base::Result<> EventMarks::add(std::span<const KernelEvent> events, DirectoryPaths& paths) {
  for (const KernelEvent& event : events) {
    if (auto added = add(event, paths); !added) return added;
  }
  return {};
}

void EventMarks::clear() {
  marks_ = {};
  bytes_ = 0;
}

base::Result<> EventMarks::add(const KernelEvent& event, DirectoryPaths& paths) {
  if ((event.mask & FAN_Q_OVERFLOW) != 0)
    return base::Error(std::make_error_code(std::errc::no_buffer_space),
                       "the kernel dropped events, because its queue was full or memory was short");
  // A change of a link count is an event without a name, beside the one of the directory.
  if (event.entry.name.empty() && (event.mask & content) == 0) return {};
  if (event.entry.name.empty()) return mark_file(event, paths);
  const bool is_directory = (event.mask & FAN_ONDIR) != 0;
  const bool is_moved = event.target || (event.mask & (FAN_MOVED_FROM | FAN_MOVED_TO)) != 0;
  // The directory that an entry left has its path from before the move, if it has another one now.
  if (auto marked = mark_directory(event.entry, paths); !marked) return marked;
  if (is_directory && is_moved) paths.forget();
  const EntryName& now = event.target ? *event.target : event.entry;
  if (event.target) {
    if (auto marked = mark_directory(now, paths); !marked) return marked;
  }
  if (!is_directory)
    return (event.mask & (content | FAN_ATTRIB)) != 0 ? mark_file(event, paths) : base::Result<>();
  if (event.target || (event.mask & FAN_MOVED_TO) != 0) return mark_entry(now, MarkKind::tree, paths);
  // A new directory may have the inode of the one that had its name before: a scan tells them apart only if
  // it opens it.
  if ((event.mask & (FAN_CREATE | FAN_ATTRIB)) != 0) return mark_entry(now, MarkKind::dir, paths);
  return {};
}

// Marks the directory that holds the file, if it is not the one of the event.
base::Result<> EventMarks::mark_file(const KernelEvent& event, DirectoryPaths& paths) {
  if (event.file.empty()) return {};
  auto place = paths.resolve(event.entry, event.file);
  if (!place) return place.error();
  if (!*place) return {};
  std::string& path = (*place)->path;
  if (is_own(path)) return {};
  const std::size_t end = path.rfind('/');
  if (end == std::string::npos) {
    insert(MarkKind::file, std::move(path));
  } else {
    insert(MarkKind::dir, path.substr(0, end));
  }
  return {};
}

// Marks the directory that holds the entry.
base::Result<> EventMarks::mark_directory(const EntryName& entry, DirectoryPaths& paths) {
  auto place = paths.find(entry.directory);
  if (!place) return place.error();
  if (!*place) return {};
  std::string& path = (*place)->path;
  if (path == tracker::spoor_directory("")) {
    ++spoor_events_;
    if (peer::is_cookie(entry.name)) cookie_ = entry.name;
  }
  if (is_own(path)) return {};
  if ((*place)->is_only_ancestor) {
    insert(MarkKind::tree, std::move(path));
  } else if (!path.empty()) {
    insert(MarkKind::dir, std::move(path));
  } else if (entry.name != ".") {  // the attributes of the top itself are not part of any total
    insert(MarkKind::file, entry.name);
  }
  return {};
}

// Marks the entry itself.
base::Result<> EventMarks::mark_entry(const EntryName& entry, MarkKind kind, DirectoryPaths& paths) {
  if (entry.name == ".") return {};
  auto place = paths.find(entry.directory);
  if (!place) return place.error();
  if (!*place) return {};
  std::string path = tracker::join_path((*place)->path, entry.name);
  if ((*place)->is_only_ancestor || path.size() > tracker::path_bytes_max) {
    insert(MarkKind::tree, std::move((*place)->path));
  } else if (!is_own(path)) {
    insert(kind, std::move(path));
  }
  return {};
}

void EventMarks::insert(MarkKind kind, std::string path) {
  const std::size_t bytes = path.size() + mark_bytes;
  if (marks_.at(static_cast<std::size_t>(kind)).insert(std::move(path)).second) bytes_ += bytes;
}

bool EventMarks::is_own(const std::string& path) const {
  return std::ranges::any_of(own_, [&](const std::string& own) {
    return path.starts_with(own) && (path.size() == own.size() || path[own.size()] == '/');
  });
}

}  // namespace spoor::watch
