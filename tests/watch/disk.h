// File systems that a test makes for a watched drive.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tests/faults/mounts.h"

namespace spoor::watch {

enum class FileSystem { ext4, xfs, btrfs, tmpfs };

std::string name_of(FileSystem type);

// A new, empty file system that is mounted while the object lives: an image on a loop device, or tmpfs.
//
// Not thread-safe.
class Disk {
 public:
  // Uses `directory`, which exists. Throws if the file system cannot be made or mounted here.
  Disk(FileSystem type, const std::filesystem::path& directory);

  const std::filesystem::path& path() const { return mount_.path(); }

  // Why fanotify cannot watch the file system for the caller; empty if it can.
  std::string why_unwatchable() const;

  // Unmounts it, again and again while it is in use. Returns false if it stays in use.
  bool unmount();

  // Mounts the same image again, here or at another place.
  void mount();
  void mount_at(faults::MountPoint& place) const { place.mount_image(image_); }

 private:
  std::filesystem::path image_;
  faults::MountPoint mount_;
};

}  // namespace spoor::watch
