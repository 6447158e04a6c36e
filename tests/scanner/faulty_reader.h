// The real file system, with faults on demand.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "scanner/walk/directory_reader.h"
#include "tests/fakes/manual_clock.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {

// Reads on several threads at once; is to be set up while nobody reads. Keys are logical paths, the same on
// all drives; drives go by their real path.
class FaultyReader final : public DirectoryReader {
 public:
  FaultyReader() { clock.set_wall(base::WallTime(std::chrono::seconds(7'258'118'400))); }  // the year 2200

  std::map<std::filesystem::path, int> drive_errors;
  std::map<std::filesystem::path, int> drive_open_errors;  // it can be looked at
  std::map<std::string, int, std::less<>> open_errors;
  std::map<std::string, int, std::less<>> list_errors;
  // The directory is listed, but some file in it can't be looked at: nothing of its files counts.
  std::map<std::string, int, std::less<>> file_errors;
  std::set<std::string, std::less<>> mount_points;
  // What the files in a directory are said to have, all together.
  std::map<std::string, std::uint64_t, std::less<>> own_bytes;
  // As on a file system that keeps neither a time of creation nor a generation.
  bool without_birth = false;
  // The identity of every directory, where it is set.
  std::optional<std::uint32_t> identity;
  // The inode numbers of subdirectories go by their paths: whatever stands at a path has the number of what
  // stood there before.
  bool reuses_inodes = false;
  // As on a file system whose directories get other times when their entries change.
  bool changes_times = false;
  mutable std::atomic<std::uint64_t> names_looked_at = 0;
  // Held against the times of files. All of them are long ago by it, however fast a test is.
  fakes::ManualClock clock;
  // As on a file system whose listings give other inode numbers than the directories themselves.
  bool inodes_unlike_listed = false;
  // Called before each listing, never twice at once.
  std::function<void(std::string_view path)> before_read;
  // Called after a look at a directory that is not opened, by any thread.
  std::function<void(std::string_view path)> after_look;
  // How often a name was looked up to open a directory, the names on the way to it included.
  mutable std::atomic<std::uint64_t> names_opened = 0;
  mutable int looks_to_fail = 0;  // the next ones at a drive

  // Of directories, drives included, since it was cleared.
  mutable std::multiset<std::string> read_paths;

  void repair() {
    drive_errors.clear();
    drive_open_errors.clear();
    open_errors.clear();
    list_errors.clear();
    file_errors.clear();
    mount_points.clear();
  }

  base::Result<DirectoryHandle> open_drive(const std::filesystem::path& drive) const override {
    for (const auto* const faults : {&drive_errors, &drive_open_errors}) {
      if (const auto fault = faults->find(drive); fault != faults->end()) return error(fault->second);
    }
    return adjusted(real_.open_drive(drive), "");
  }

  base::Result<DirectoryHandle> look_at_drive(const std::filesystem::path& drive) const override {
    if (const auto fault = drive_errors.find(drive); fault != drive_errors.end()) return error(fault->second);
    if (looks_to_fail > 0) {
      --looks_to_fail;
      return error(EMFILE);
    }
    return adjusted(real_.look_at_drive(drive), "");
  }

  base::Result<std::optional<std::string>> read_file(const DirectoryHandle& root, const char* name,
                                                     std::size_t bytes_max) const override {
    return real_.read_file(root, name, bytes_max);
  }

  base::Result<DirectoryHandle> open(const DirectoryHandle& top, std::string_view below,
                                     std::string_view path) const override {
    names_opened += 1 + static_cast<std::uint64_t>(std::ranges::count(below, '/'));
    if (const auto fault = open_errors.find(path); fault != open_errors.end()) return error(fault->second);
    return adjusted(real_.open(top, below, path), path);
  }

  bool changes_times_with_entries(const DirectoryHandle& /*directory*/) const override {
    return changes_times;
  }

  base::Result<DirectoryFacts> look_at(const DirectoryHandle& top, std::string_view below,
                                       std::string_view path) const override {
    ++names_looked_at;
    if (const auto fault = open_errors.find(path); fault != open_errors.end()) return error(fault->second);
    auto facts = real_.look_at(top, below, path);
    if (after_look) after_look(path);
    if (!facts) return facts;
    DirectoryHandle handle;
    handle.take_facts(*facts);
    return adjusted(std::move(handle), path)->facts();
  }

  base::Result<Listing> read(const DirectoryHandle& directory, std::string_view path,
                             const tracker::NamespaceRules& rules, const ListingParts& parts,
                             const std::stop_token& stop) const override {
    {
      const std::scoped_lock lock(mutex_);
      if (before_read) before_read(path);
      read_paths.emplace(path);
    }
    if (const auto fault = list_errors.find(path); fault != list_errors.end()) return error(fault->second);
    auto listing = real_.read(directory, path, rules, parts, stop);
    if (listing && reuses_inodes) listing->subdirectories = with_reused_inodes(listing->subdirectories, path);
    if (const auto fault = file_errors.find(path); fault != file_errors.end() && listing) {
      listing->incomplete = error(fault->second);
      listing->own = {};
      listing->linked.clear();
    }
    if (const auto bytes = own_bytes.find(path); bytes != own_bytes.end() && listing) {
      listing->own.bytes = bytes->second;
      listing->signature ^= bytes->second;
    }
    return listing;
  }

 private:
  static constexpr std::uint64_t inodes_unlike_listed_by = std::uint64_t{1} << 40U;

  std::uint32_t identity_by_ctime(std::int64_t ctime_ns) const {
    const bool is_racy = is_within_step(ctime_ns, clock.wall_now().time_since_epoch().count());
    return is_racy ? no_identity : identity_of_ctime(ctime_ns);
  }

  static std::uint64_t inode_by(std::string_view path) { return std::hash<std::string_view>()(path) | 1U; }

  static Subdirectories with_reused_inodes(const Subdirectories& found, std::string_view path) {
    Subdirectories reused;
    for (std::size_t number = 0; number < found.size(); ++number) {
      const std::string_view name = found[number].name;
      reused.add(name, inode_by(tracker::join_path(path, name)));
    }
    return reused;
  }

  static base::Error error(int number) { return base::system_error(number, "a fault made by the test"); }

  base::Result<DirectoryHandle> adjusted(base::Result<DirectoryHandle> handle, std::string_view path) const {
    if (!handle) return handle;
    for (std::string_view at = path; !at.empty(); at = tracker::parent_path(at)) {
      if (mount_points.contains(at)) {
        ++handle->mount;
        break;
      }
    }
    if (without_birth) handle->birth = identity_by_ctime(handle->ctime_ns);
    if (identity) handle->birth = *identity;
    if (reuses_inodes && !path.empty()) handle->inode = inode_by(path);
    if (inodes_unlike_listed && !path.empty()) handle->inode += inodes_unlike_listed_by;
    return handle;
  }

  mutable std::mutex mutex_;
  PosixDirectoryReader real_{clock};
};

}  // namespace spoor::scanner
