// Changes the drive of a node at random and records what has to be marked.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/random.h"

namespace spoor::support {

// What a tree contains besides plain files with plain names.
enum class TreeOddities {
  none,
  // Names with line breaks, leading dashes, invalid UTF-8, and text that tools print themselves; symbolic and
  // hard links; changed permissions; entries replaced by another type.
  all,
};

// Not thread-safe.
class TreeWriter {
 public:
  TreeWriter(Random& random, std::filesystem::path drive, TreeOddities oddities = TreeOddities::none)
      : random_(random), drive_(std::move(drive)), oddities_(oddities) {}

  // Creates `directories` directories with files, which need no mark.
  void fill(int directories);

  // Creates, writes, renames or removes an entry.
  void change();

  // The changes since the last call: logical paths, each followed by a NUL.
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
