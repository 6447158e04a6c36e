// The real file system, with faults on demand.
#pragma once

#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "scanner/directory_reader.h"

namespace spoor::scanner {

// Not thread-safe. Keys are logical paths, the same on all drives; drives go by their real path.
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
  // Called before each listing.
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

  base::Result<DirectoryHandle> open(const DirectoryHandle& parent, const std::string& name,
                                     std::string_view path) const override {
    if (const auto fault = open_errors.find(path); fault != open_errors.end()) return error(fault->second);
    return adjusted(real_.open(parent, name, path), path);
  }

  base::Result<Listing> read(const DirectoryHandle& directory, std::string_view path,
                             const tracker::NamespaceRules& rules,
                             const std::stop_token& stop) const override {
    if (before_read) before_read(path);
    read_paths.emplace(path);
    if (const auto fault = list_errors.find(path); fault != list_errors.end()) return error(fault->second);
    auto listing = real_.read(directory, path, rules, stop);
    if (const auto fault = file_errors.find(path); fault != file_errors.end() && listing) {
      listing->incomplete = error(fault->second);
      listing->own = {};
    }
    return listing;
  }

 private:
  static base::Error error(int number) { return base::system_error(number, "a fault made by the test"); }

  base::Result<DirectoryHandle> adjusted(base::Result<DirectoryHandle> handle, std::string_view path) const {
    if (!handle) return handle;
    if (mount_points.contains(path)) ++handle->device;
    if (without_birth) handle->birth = 0;
    return handle;
  }

  PosixDirectoryReader real_;
};

}  // namespace spoor::scanner
