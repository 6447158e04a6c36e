// The kernel's events of a drive, and where on it they happened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "peer/http/watch_report.h"

namespace spoor::watch {

// The handle of a directory or file in its file system (name_to_handle_at(2)), as bytes: the type, then the
// handle. Valid across renames and reboots; a new file that reuses an inode has another handle.
using DirectoryHandle = std::string;
using FileHandle = std::string;

// An entry of a directory. The name "." is the directory itself.
struct EntryName {
  DirectoryHandle directory;
  std::string name;

  friend bool operator==(const EntryName&, const EntryName&) = default;
};

struct KernelEvent {
  std::uint64_t mask = 0;  // FAN_CREATE, FAN_ONDIR, ...; the kernel may join several
  // Of a rename: the old name. Empty for FAN_Q_OVERFLOW, and where the kernel knows the file, but not its
  // directory: an NFS server changes it by a handle.
  EntryName entry;
  std::optional<EntryName> target;  // of a rename: the new name
  FileHandle file = {};             // what a change of content or attributes concerns; else empty

  friend bool operator==(const KernelEvent&, const KernelEvent&) = default;
};

// Where the directory of an event is.
struct Place {
  std::string path = {};          // below the drive, empty for its top
  bool is_only_ancestor = false;  // the directory's own path is too long: it is somewhere below `path`
};

// Finds the directories of events on one drive, and caches their paths.
//
// A path is cached until some directory is renamed. This is right across renames of any ancestor: events
// arrive in order, and a rename marks all below the new name, so a cached path is used for earlier events
// only, whose changes that mark covers.
//
// Not thread-safe.
class DirectoryPaths {
 public:
  // The cache takes about `cache_bytes_max` at most.
  explicit DirectoryPaths(std::size_t cache_bytes_max) : cache_bytes_max_(cache_bytes_max) {}
  virtual ~DirectoryPaths() = default;

  // As resolve(), from the cache if the handle is there.
  base::Result<std::optional<Place>> find(const DirectoryHandle& handle) {
    if (const auto known = cache_.find(handle); known != cache_.end()) return known->second;
    auto place = resolve(handle);
    if (!place) return place;
    if (cache_bytes_ > cache_bytes_max_) forget();
    constexpr std::size_t entry_bytes = 160;  // of one path, beside its texts
    cache_bytes_ += handle.size() + (*place ? (*place)->path.size() : 0) + entry_bytes;
    cache_.emplace(handle, *place);
    return place;
  }

  // Some directory has another path now: nothing that was found before holds.
  void forget() {
    cache_.clear();
    cache_bytes_ = 0;
  }

  // Returns nullopt if the directory is gone or lies outside of the drive. Fails if that cannot be found out.
  virtual base::Result<std::optional<Place>> resolve(const DirectoryHandle& handle) = 0;

  // Where a file is now whose event has another name, one that is gone (`entry`), or none (empty): a file
  // keeps its first name for its open descriptors. nullopt: the name still leads to it, or it is gone or
  // outside of the drive. Fails if that cannot be found out.
  virtual base::Result<std::optional<Place>> resolve(const EntryName& entry, const FileHandle& file) = 0;

 private:
  const std::size_t cache_bytes_max_;
  std::unordered_map<DirectoryHandle, std::optional<Place>> cache_;
  std::size_t cache_bytes_ = 0;
};

// The events of one drive that is being watched.
//
// Not thread-safe.
class EventSource : public DirectoryPaths {
 public:
  using DirectoryPaths::DirectoryPaths;

  // Call before the functions below, and leave() after them: in between, the drive cannot be unmounted. Fails
  // if it was, or is another directory now: then events may be lost.
  virtual base::Result<> enter() = 0;
  virtual void leave() = 0;

  // The events that wait, up to some number; nothing if there are none. Does not wait. Until settle(), they
  // count as in flight: if the process ends meanwhile, they are lost. Fails if events are lost.
  virtual base::Result<std::vector<KernelEvent>> read() = 0;

  // Of the events that wait.
  virtual std::uint64_t queue_bytes() = 0;

  // All events that were read since this gap are marked.
  virtual void settle(const peer::DriveGap& gap) = 0;

  // The gap with which an earlier process settled it; empty for a source that begins here.
  virtual const peer::DriveGap& settled() const = 0;

  // The source ends for good: no later process continues it.
  virtual void discard() = 0;

  // Becomes readable when events arrive; -1: the source is not to be waited for.
  virtual int descriptor() const = 0;

  // The directories that Spoor writes to, below the drive.
  virtual std::vector<std::string> own_directories() const = 0;
};

// Begins to watch the drive.
using OpenSource = std::function<base::Result<std::unique_ptr<EventSource>>()>;

}  // namespace spoor::watch
