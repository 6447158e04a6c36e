#pragma once

#include <array>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tracker/paths/path.h"
#include "watch/event_source.h"

namespace spoor::watch {

using tracker::MarkKind;

// Marks that events ask for on one drive and that the daemon has not acknowledged yet, each path once. Paths
// are below the drive.
//
// Not thread-safe.
class EventMarks {
 public:
  // `own`: directories that Spoor writes to, below the drive. What changes there is not marked.
  explicit EventMarks(std::vector<std::string> own) : own_(std::move(own)) {}

  // Adds the marks of these events, in their order. Every change that an event reports then lies below a
  // mark, wherever its directory is by now:
  // - A change in a directory marks the directory's path at this moment, or the one before a rename whose
  //   event follows. That rename marks all below the new name.
  // - A change of a file whose name of then is gone marks the directory that it is in now.
  // - A directory that is gone needs no mark: its removal is an event of its parent.
  // Fails if a directory cannot be found or is not known, or the kernel has dropped events: then anything on
  // the drive may have changed.
  base::Result<> add(std::span<const KernelEvent> events, DirectoryPaths& paths);

  // An entry of the drive's top marks the top: a mark of kind `file`.
  const std::set<std::string>& of(MarkKind kind) const { return marks_.at(static_cast<std::size_t>(kind)); }

  std::size_t size() const { return marks_[0].size() + marks_[1].size() + marks_[2].size(); }
  bool empty() const { return size() == 0; }
  std::size_t bytes() const { return bytes_; }  // about what they take in memory
  void clear();

  // The last cookie of a scan among the events (peer/http/watch_report.h), once; empty: there was none.
  std::string take_cookie() { return std::exchange(cookie_, {}); }

  // How many events in `.spoor` there were, which are not marked.
  std::size_t spoor_events() const { return spoor_events_; }

 private:
  base::Result<> add(const KernelEvent& event, DirectoryPaths& paths);
  base::Result<> mark_file(const KernelEvent& event, DirectoryPaths& paths);
  base::Result<> mark_directory(const EntryName& entry, DirectoryPaths& paths);
  base::Result<> mark_entry(const EntryName& entry, MarkKind kind, DirectoryPaths& paths);
  void insert(MarkKind kind, std::string path);
  bool is_own(const std::string& path) const;

  std::vector<std::string> own_;
  std::array<std::set<std::string>, 3> marks_;  // by their kind
  std::size_t bytes_ = 0;
  std::string cookie_;
  std::size_t spoor_events_ = 0;
};

}  // namespace spoor::watch
