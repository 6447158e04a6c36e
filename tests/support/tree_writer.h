// A node's drive as somebody changes it, who keeps what has to be marked.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/random.h"

namespace spoor::support {

// What a tree has beside plain files under plain names.
enum class TreeOddities {
  none,
  // Names with line breaks, leading dashes, bytes that are no UTF-8, and those that tools print themselves;
  // symbolic and hard links; changed rights; another type under the name of what was there.
  all,
};

// Not thread-safe.
class TreeWriter {
 public:
  TreeWriter(Random& random, std::filesystem::path drive, TreeOddities oddities = TreeOddities::none)
      : random_(random), drive_(std::move(drive)), oddities_(oddities) {}

  // So many directories, and files in them, which need no mark.
  void fill(int directories);

  // Makes, writes, renames or removes something.
  void change();

  // What changed since the last call: logical paths, each with a NUL behind it.
  std::string take_changed();

 private:
  std::vector<std::filesystem::path> all_directories() const;
  std::filesystem::path some_directory();
  void make_directory();
  void write_file();
  void remove_something();
  void rename_something();
  void make_link();
  void change_rights();
  void replace_by_another_type();
  std::string new_name(const std::string& plain);

  Random& random_;
  std::filesystem::path drive_;
  TreeOddities oddities_;
  std::vector<std::filesystem::path> changed_;
};

}  // namespace spoor::support
