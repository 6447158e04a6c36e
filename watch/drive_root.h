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
  void leave() {
    root_.reset();
    directory_.reset();
  }

  // Of the open drive.
  int descriptor() const { return root_->get(); }

  // As of the last enter().
  dev_t device() const { return device_; }
  ino_t inode() const { return inode_; }
  const std::string& real_path() const { return real_path_; }  // as the kernel shows it

  // Of the directory of this handle: where it lies below the drive, which must be open, whether or not a
  // mount hides it there.
  base::Result<std::optional<Place>> resolve(const DirectoryHandle& handle) const;

  // Of the file of this handle, as ResolveFile (watch/directory_paths.h). The drive must be open.
  base::Result<std::optional<Place>> resolve(const EntryName& entry, const FileHandle& file);

  // Whether handles can be resolved: tries that of the drive itself, which must be open.
  base::Result<> check_handles() const;

 private:
  bool leads_to(const EntryName& entry, const FileHandle& file);
  base::Result<std::optional<Place>> place_at(Place real) const;

  const std::filesystem::path drive_;
  std::optional<base::Descriptor> root_;
  std::optional<std::pair<DirectoryHandle, base::Descriptor>> directory_;  // for further events of its files
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::string real_path_;
};

}  // namespace spoor::watch
