// Finds directories that are the same, or one inside the other, whatever their paths.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace spoor::base {

// Two directories of a list, by their indices.
struct DirectoryOverlap {
  std::size_t directory = 0;  // the inner one; of two that are the same, the later one in the list
  std::size_t other = 0;
  bool is_same = false;  // by device and inode: a symbolic link, or a bind mount
};

// A sentence for the operator: why the drive can't be used, and what to do.
std::string overlap_text(const DirectoryOverlap& overlap, const std::vector<std::filesystem::path>& drives);

// Follows symbolic links. A directory on another file system is not inside; one in a subvolume of btrfs is.
// Returns at most one overlap for each directory, in the order of the list. A directory that does not exist
// or can't be read overlaps with none: call again once it exists.
std::vector<DirectoryOverlap> find_overlaps(const std::vector<std::filesystem::path>& directories);

}  // namespace spoor::base
