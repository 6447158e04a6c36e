// File systems of a test's own, which fill up, turn read-only and go away as real ones do.
//
// They are mounted in a mount namespace of the test program's own, which every program that it starts
// shares: nobody else sees them, and none outlives it, however it ends. Failures are exceptions.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file_system.h"

namespace spoor::faults {

// Why nothing can be mounted here; empty where it can. The first call makes the namespace, for the thread
// that calls and for all that it starts from then on.
std::string why_no_mounts();

// Why no image of a file system can be; more is needed for one.
std::string why_no_images();

// A directory, made where it is not there, on which something is mounted at times. Unmounted with the
// object. Not thread-safe.
class MountPoint {
 public:
  explicit MountPoint(std::filesystem::path path);
  MountPoint(const MountPoint&) = delete;
  MountPoint& operator=(const MountPoint&) = delete;
  ~MountPoint();

  const std::filesystem::path& path() const { return path_; }

  void mount_tmpfs(const std::string& size);
  void mount_directory(const std::filesystem::path& shown);            // a bind mount
  void mount_directory_read_only(const std::filesystem::path& shown);  // the same
  void mount_image(const std::filesystem::path& image);                // ext4 in a file, by a loop device
  void unmount();                                                      // fails while it is in use

  void make_read_only();
  void make_writable();

  // The file system takes itself for broken and writes no more, as after an error of the disk. Only
  // mounting it anew helps. Whoever writes to it must be stopped meanwhile: ext4 may tell a sync that is
  // under way that it succeeded.
  void abort();

  // The file system stops at once, as in a power cut: what it did not write yet is lost. For the rest as
  // above.
  void cut_power();

 private:
  std::filesystem::path path_;
  bool mounted_ = false;
};

// Shows another start of the machine to every program that is started from now on, for as long as the
// object lives.
class OtherBoot {
 public:
  explicit OtherBoot(const std::filesystem::path& scratch_file);
  OtherBoot(const OtherBoot&) = delete;
  OtherBoot& operator=(const OtherBoot&) = delete;
  ~OtherBoot();
};

// `options` are mkfs.ext4's.
void make_image(const std::filesystem::path& image, std::size_t bytes,
                const std::vector<std::string>& options = {});

// A file that takes all that is left of its file system. Removed with the object.
class Filler {
 public:
  explicit Filler(std::filesystem::path file);
  Filler(const Filler&) = delete;
  Filler& operator=(const Filler&) = delete;
  ~Filler();

 private:
  std::filesystem::path file_;
};

// A file system that takes no write and refuses none, for as long as the object lives. What writes to it
// can't even be killed meanwhile.
class FrozenDisk {
 public:
  explicit FrozenDisk(std::filesystem::path mount_point);
  FrozenDisk(const FrozenDisk&) = delete;
  FrozenDisk& operator=(const FrozenDisk&) = delete;
  ~FrozenDisk();

 private:
  std::filesystem::path mount_point_;
};

// A file system that responds to nothing, for as long as the object lives: FUSE without a program behind it.
// To users other than its own, even root, it refuses everything. The mount point may be a file.
class HangingDisk {
 public:
  explicit HangingDisk(std::filesystem::path mount_point, unsigned user = 0);
  HangingDisk(const HangingDisk&) = delete;
  HangingDisk& operator=(const HangingDisk&) = delete;
  ~HangingDisk();

  static bool is_possible();  // whether the kernel has FUSE

 private:
  std::filesystem::path mount_point_;
  base::Descriptor device_;
};

}  // namespace spoor::faults
