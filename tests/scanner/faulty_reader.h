// The real file system, with faults on demand.
#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "scanner/directory_reader.h"
#include "tracker/path.h"

namespace spoor::scanner {

// Reads on several threads at once; is to be set up while nobody reads. Keys are logical paths, the same on
// all drives; drives go by their real path.
class FaultyReader final : public DirectoryReader {
 public:
  std::map<std::filesystem::path, int> drive_errors;
  std::map<std::string, int, std::less<>> open_errors;
  std::map<std::string, int, std::less<>> list_errors;
  // The directory is listed, but some file in it can't be looked at: nothing of its files counts.
  std::map<std::string, int, std::less<>> file_errors;
  std::set<std::string, std::less<>> mount_points;
  // As on a file system that keeps no time of creation.
  bool without_birth = false;
  // As on a file system whose listings give other inode numbers than the directories themselves.
  bool inodes_unlike_listed = false;
  // Called before each listing, never twice at once.
  std::function<void(std::string_view path)> before_read;
  // Of directories, drives included, since it was cleared.
  mutable std::multiset<std::string> read_paths;

  void repair() {
    drive_errors.clear();
    open_errors.clear();
    list_errors.clear();
    file_errors.clear();
    mount_points.clear();
  }

  base::Result<DirectoryHandle> open_drive(const std::filesystem::path& drive) const override {
    if (const auto fault = drive_errors.find(drive); fault != drive_errors.end()) return error(fault->second);
    return adjusted(real_.open_drive(drive), "");
  }

  base::Result<DirectoryHandle> look_at_drive(const std::filesystem::path& drive) const override {
    if (const auto fault = drive_errors.find(drive); fault != drive_errors.end()) return error(fault->second);
    return adjusted(real_.look_at_drive(drive), "");
  }

  base::Result<DirectoryHandle> open_below(const DirectoryHandle& top,
                                           std::string_view below) const override {
    const std::string_view path = below == "." ? "" : below;
    if (const auto fault = open_errors.find(path); fault != open_errors.end()) return error(fault->second);
    return adjusted(real_.open_below(top, below), path);
  }

  base::Result<DirectoryHandle> open(const DirectoryHandle& parent, const std::string& name,
                                     std::string_view path) const override {
    if (const auto fault = open_errors.find(path); fault != open_errors.end()) return error(fault->second);
    return adjusted(real_.open(parent, name, path), path);
  }

  base::Result<Listing> read(const DirectoryHandle& directory, std::string_view path,
                             const tracker::NamespaceRules& rules, FileNames file_names,
                             const std::stop_token& stop) const override {
    {
      const std::scoped_lock lock(mutex_);
      if (before_read) before_read(path);
      read_paths.emplace(path);
    }
    if (const auto fault = list_errors.find(path); fault != list_errors.end()) return error(fault->second);
    auto listing = real_.read(directory, path, rules, file_names, stop);
    if (const auto fault = file_errors.find(path); fault != file_errors.end() && listing) {
      listing->incomplete = error(fault->second);
      listing->own = {};
    }
    return listing;
  }

 private:
  static constexpr std::uint64_t inodes_unlike_listed_by = std::uint64_t{1} << 40U;

  static base::Error error(int number) { return base::system_error(number, "a fault made by the test"); }

  base::Result<DirectoryHandle> adjusted(base::Result<DirectoryHandle> handle, std::string_view path) const {
    if (!handle) return handle;
    for (std::string_view at = path; !at.empty(); at = tracker::parent_path(at)) {
      if (mount_points.contains(at)) {
        ++handle->device;
        break;
      }
    }
    if (without_birth) handle->birth = 0;
    if (inodes_unlike_listed && !path.empty()) handle->inode += inodes_unlike_listed_by;
    return handle;
  }

  mutable std::mutex mutex_;
  PosixDirectoryReader real_;
};

}  // namespace spoor::scanner
