// A node's drive as somebody changes it, who keeps what has to be marked.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/random.h"

namespace spoor::support {

// Not thread-safe.
class TreeWriter {
 public:
  TreeWriter(Random& random, std::filesystem::path drive) : random_(random), drive_(std::move(drive)) {}

  // So many directories, and files in them, which need no mark.
  void fill(int directories);

  // Makes, writes, renames or removes something.
  void change();

  // What changed since the last call, one logical path a line.
  std::string take_changed();

 private:
  std::vector<std::filesystem::path> all_directories() const;
  std::filesystem::path some_directory();
  void make_directory();
  void write_file();
  void remove_something();
  void rename_something();

  Random& random_;
  std::filesystem::path drive_;
  std::vector<std::filesystem::path> changed_;
};

}  // namespace spoor::support
