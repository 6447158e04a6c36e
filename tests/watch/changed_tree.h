// The tree of a drive that random operations change.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "tests/support/random.h"

namespace spoor::watch {

struct ChangedPlaces {
  std::filesystem::path drive;
  std::filesystem::path scratch;      // a directory on another file system
  std::filesystem::path beside = {};  // one on the drive's file system, not below the drive; may be empty
  std::filesystem::path alias = {};   // another mount of the drive; may be empty
};

// Chooses what an operation changes. Paths are absolute; those that it returns for new entries are free.
//
// Not thread-safe.
class ChangedTree {
 public:
  ChangedTree(support::Random& random, ChangedPlaces places) : random_(random), places_(std::move(places)) {}

  support::Random& random() { return random_; }
  const ChangedPlaces& places() const { return places_; }

  // A directory, at times the drive itself. Its path is not long.
  std::filesystem::path some_directory();

  // A directory below the drive's top with few and not deep entries; made if there is none.
  std::filesystem::path some_tree();

  // A regular file with one name; made if there is none.
  std::filesystem::path some_file();

  std::filesystem::path new_path() { return new_path_in(some_directory()); }
  std::filesystem::path new_path_in(const std::filesystem::path& directory);

  // All directories below `top`.
  std::vector<std::filesystem::path> directories(const std::filesystem::path& top) const;

  // A path outside of `tree` for it to be renamed to.
  std::filesystem::path new_path_outside(const std::filesystem::path& tree);

  // Without the bytes that some tools cannot have in a name.
  std::filesystem::path new_plain_path();

  // Creates a directory with some files and directories in it.
  void fill(const std::filesystem::path& directory);
  void write(const std::filesystem::path& file, std::size_t bytes);

  // The truncated write of a full disk is a failure of the test.
  static void write_to(const base::Descriptor& file, const std::string& bytes);

  // Runs a program, which must succeed.
  void run(const std::vector<std::string>& command);

  // A directory that an earlier operation removed, if there is one.
  std::optional<std::filesystem::path> removed() const;
  void remember_removed(const std::filesystem::path& directory) { removed_.push_back(directory); }

  // For the middle of an operation, at times: returns once what it has done so far is marked. What an event
  // names may then have another path when the next one comes.
  void pause();
  void set_pause(std::function<void()> pause) { pause_ = std::move(pause); }

  // Keeps a file open, until it is taken to be written to.
  void hold(base::Descriptor descriptor);
  std::unique_ptr<base::Descriptor> take_held();

  // Removes trees while there are more entries than a test can look through in a short time.
  void prune();

 private:
  std::string new_name();
  bool is_small(const std::filesystem::path& tree) const;
  std::size_t count_entries() const;

  support::Random& random_;
  const ChangedPlaces places_;
  std::function<void()> pause_;
  std::vector<std::filesystem::path> removed_;
  std::vector<std::unique_ptr<base::Descriptor>> held_;
};

// A random change by ordinary programs or system calls, none of which marks anything.
struct Change {
  std::string name;
  std::string program;                            // which it runs, beside those of every system; may be empty
  std::function<std::string(ChangedTree&)> make;  // returns the paths that it changed, for messages
};

std::vector<Change> shell_changes();   // cp, tar, rsync, git, sqlite3, ...
std::vector<Change> call_changes();    // system calls, and renames of directories
std::vector<Change> border_changes();  // across the border of a drive that is a part of a file system

}  // namespace spoor::watch
