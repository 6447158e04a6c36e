// Directories that are the same one, or lie one inside the other, whatever their paths say.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace spoor::base {

// Two of a list of directories, by their numbers in it.
struct DirectoryOverlap {
  std::size_t directory = 0;  // the inner one; of two that are the same, the one that comes later
  std::size_t other = 0;
  bool is_same = false;  // by device and inode: a symbolic link, or a bind mount
};

// Why a drive can't be used because of its overlap with another of these drives, as a sentence.
std::string overlap_text(const DirectoryOverlap& overlap, const std::vector<std::filesystem::path>& drives);

// Follows symbolic links. One on another file system is not inside. At most one overlap for each directory,
// in the order of the list. A directory that is not there, or can't be looked at, overlaps with none: look
// again once it is there.
std::vector<DirectoryOverlap> find_overlaps(const std::vector<std::filesystem::path>& directories);

}  // namespace spoor::base
