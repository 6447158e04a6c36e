// The entries of a drive, determined without Spoor.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "tests/support/tree_totals.h"

namespace spoor::watch {

// What lstat(2) returns for one entry of a directory.
struct EntryState {
  mode_t type = 0;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
  ino_t inode = 0;
  nlink_t links = 0;

  bool is_directory() const;
};

using Entries = std::map<std::string, EntryState>;

// The directories below a drive by their paths, the top by an empty one, without `.spoor`.
using TreeSnapshot = std::map<std::string, Entries>;

// For a tree that does not change meanwhile.
TreeSnapshot take_snapshot(const std::filesystem::path& drive);

// The directories of `after` that `before` does not have, or has with other entries of their own: other names
// or types, or files with another size or mtime. Another ctime counts, too, for files with one name: a change
// of another name may lie in a directory that nothing else changed.
std::set<std::string> changed_directories(const TreeSnapshot& before, const TreeSnapshot& after);

// The directories that only `before` has.
std::set<std::string> removed_directories(const TreeSnapshot& before, const TreeSnapshot& after);

// The totals of each directory with all below it. The bytes of a file with several names count once in each.
std::map<std::string, support::TreeTotals> directory_totals(const TreeSnapshot& tree);

}  // namespace spoor::watch
