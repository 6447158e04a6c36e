// Random changes of a tree by ordinary programs and system calls, none of which marks anything.
#pragma once

#include <string>
#include <vector>

#include "tests/watch/changed_tree.h"

namespace spoor::watch {

struct Change {
  std::string name;
  std::string program;                // which it runs, beside those of every system; may be empty
  std::string (*make)(ChangedTree&);  // returns the path that it changed, for messages
};

std::vector<Change> tool_changes();        // cp, tar, rsync, mv, rm, ...
std::vector<Change> repository_changes();  // git, sqlite3
std::vector<Change> file_changes();        // system calls on files and names
std::vector<Change> directory_changes();   // renames of directories
std::vector<Change> border_changes();      // across the border of a drive that is a part of a file system

// All of them that can be made here: whose program is installed, and on such a drive. Prints the others.
std::vector<Change> available_changes(const ChangedPlaces& places);

}  // namespace spoor::watch
