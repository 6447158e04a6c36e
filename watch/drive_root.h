#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/file_system.h"
#include "watch/directory_paths.h"

namespace spoor::watch {

// The top directory of a drive, open at times. Opens the handles of directories below it
// (open_by_handle_at(2)), which needs CAP_DAC_READ_SEARCH.
//
// Not thread-safe.
class DriveRoot {
 public:
  explicit DriveRoot(std::filesystem::path drive) : drive_(std::move(drive)) {}

  // Opens the drive, until leave(): while it is open, its file system cannot be unmounted.
  base::Result<> enter();
  void leave() { root_.reset(); }

  // Of the open drive.
  int descriptor() const { return root_->get(); }

  // As of the last enter().
  dev_t device() const { return device_; }
  ino_t inode() const { return inode_; }
  const std::string& real_path() const { return real_path_; }  // as the kernel shows it

  // Of the directory of this handle: where it lies below the drive, which must be open, whether or not a
  // mount hides it there.
  base::Result<std::optional<Place>> resolve(const DirectoryHandle& handle) const;

  // Whether handles can be resolved: tries that of the drive itself, which must be open.
  base::Result<> check_handles() const;

 private:
  const std::filesystem::path drive_;
  std::optional<base::Descriptor> root_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::string real_path_;
};

}  // namespace spoor::watch
