// Random changes of a drive, and what events they have to cause.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "tests/publish/tree_copy.h"
#include "tests/support/random.h"
#include "tests/support/tree_writer.h"

namespace spoor::publish {

// Not thread-safe.
class DriveChanges {
 public:
  DriveChanges(support::Random& random, std::filesystem::path drive);

  void change();

  // The changes since the last call: logical paths, each followed by a NUL. Mark them with `--kind dir` and
  // `--kind tree`.
  std::string take_changed();
  std::string take_moved() { return std::exchange(moved_, {}); }

  // A scan has found the changes up to now.
  void found_by(std::uint64_t scan);

  // The files that this object wrote last, whose last event is older than the scan that found that.
  std::string missing_events(const TreeCopy& copy) const;

 private:
  struct Written {
    std::filesystem::file_time_type at;
    std::uintmax_t size = 0;
    std::uint64_t scan = 0;  // 0: not yet found
  };

  std::filesystem::path some_entry(bool is_file);
  void write(const std::filesystem::path& path);
  void append_to_file();
  void write_many_files();
  void make_deep_tree();
  void replace_by_new_directory();
  void swap_directories();

  support::Random& random_;
  const std::filesystem::path drive_;
  support::TreeWriter writer_;
  std::string changed_;
  std::string moved_;
  std::map<std::string, Written> written_;
};

}  // namespace spoor::publish
