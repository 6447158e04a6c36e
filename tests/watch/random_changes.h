// Random changes of a tree by ordinary programs and system calls, none of which marks anything.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/watch/changed_tree.h"

namespace spoor::watch {

struct Change {
  std::string name;
  std::string program;                            // which it runs, beside those of every system; may be empty
  std::function<std::string(ChangedTree&)> make;  // returns the paths that it changed, for messages
};

std::vector<Change> shell_changes();   // cp, tar, rsync, git, sqlite3, ...
std::vector<Change> call_changes();    // system calls, and renames of directories
std::vector<Change> border_changes();  // across the border of a drive that is a part of a file system

// All of them that can be made here: whose program is installed, and on such a drive. Prints the others.
std::vector<Change> available_changes(const ChangedPlaces& places);

}  // namespace spoor::watch
