// The events of fanotify(7), as read(2) returns them from a group with FAN_REPORT_DFID_NAME and
// FAN_REPORT_FID.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

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

// Fails with std::errc::bad_message if the bytes are not whole events of this version of the interface, or an
// event other than FAN_Q_OVERFLOW names nothing: then nothing is known of what changed.
base::Result<std::vector<KernelEvent>> decode_kernel_events(std::span<const std::byte> bytes);

}  // namespace spoor::watch
