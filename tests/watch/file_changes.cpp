#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "tests/watch/random_changes.h"

namespace spoor::watch {
namespace {

namespace fs = std::filesystem;

std::string write_file(ChangedTree& tree) {
  const fs::path file = tree.random().one_in(2) ? tree.some_file() : tree.new_path();
  tree.write(file, tree.random().below(10'000));
  return file;
}

// The same size, other bytes.
std::string overwrite(ChangedTree& tree) {
  const fs::path file = tree.some_file();
  const base::Descriptor open(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  ChangedTree::write_to(open, tree.random().bytes(fs::file_size(file)));
  return file;
}

std::string truncate(ChangedTree& tree) {
  const fs::path file = tree.some_file();
  fs::resize_file(file, tree.random().below(20'000));
  return file;
}

std::string allocate(ChangedTree& tree) {
  static const std::vector<int> modes{0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE,
                                      FALLOC_FL_ZERO_RANGE, FALLOC_FL_COLLAPSE_RANGE};
  const fs::path file = tree.some_file();
  const base::Descriptor open(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  constexpr off_t block = 4096;
  // Not every file system has every mode.
  static_cast<void>(::fallocate(open.get(), tree.random().pick(modes), 0,
                                block * static_cast<off_t>(tree.random().between(1, 4))));
  return file;
}

// In its own directory: the kernel names no other one of a file that gets a second name.
std::string link_file(ChangedTree& tree) {
  const fs::path file = tree.some_file();
  const fs::path name = tree.new_path_in(file.parent_path());
  fs::create_hard_link(file, name);
  if (tree.random().one_in(2)) tree.write(name, 500);
  return name;
}

std::string unlink_name(ChangedTree& tree) {
  for (const auto& directory : tree.directories(tree.places().drive)) {
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (!fs::is_regular_file(entry.symlink_status()) || entry.hard_link_count() == 1) continue;
      const fs::path name = entry.path();
      if (tree.random().one_in(2)) tree.write(name, 500);
      fs::remove(name);
      return name;
    }
  }
  return link_file(tree);
}

std::string remove_file(ChangedTree& tree) {
  const fs::path file = tree.some_file();
  fs::remove(file);
  return file;
}

std::string move_file(ChangedTree& tree) {
  const fs::path from = tree.some_file();
  const fs::path to = tree.random().one_in(2) ? tree.new_path() : tree.new_path_in(from.parent_path());
  fs::rename(from, to);
  return from.native() + " to " + to.native();
}

std::string set_attribute(ChangedTree& tree) {
  const fs::path path = tree.random().one_in(3) ? tree.some_tree() : tree.some_file();
  const std::string value = tree.random().letters(20);
  static_cast<void>(::setxattr(path.c_str(), "user.spoor", value.data(), value.size(), 0));
  return path;
}

std::string set_times(ChangedTree& tree) {
  const fs::path file = tree.some_file();
  const timespec time{static_cast<time_t>(tree.random().below(1'000'000'000)), 5};
  const timespec times[]{time, time};
  static_cast<void>(::utimensat(AT_FDCWD, file.c_str(), times, AT_SYMLINK_NOFOLLOW));
  return file;
}

std::string make_symlink(ChangedTree& tree) {
  const fs::path path = tree.new_path();
  fs::create_symlink(tree.random().letters(2), path);
  return path;
}

// With a name that no file gets: a program that opens it to write would wait for a reader.
std::string make_fifo(ChangedTree& tree) {
  const fs::path path = tree.new_plain_path().native() + ".fifo";
  static_cast<void>(::mkfifo(path.c_str(), 0600));
  return path;
}

// Another type under the same name.
std::string replace_by_type(ChangedTree& tree) {
  const fs::path path = tree.random().one_in(2) ? tree.some_file() : tree.some_tree();
  fs::remove_all(path);
  if (tree.random().one_in(3)) {
    fs::create_symlink("target", path);
  } else if (tree.random().one_in(2)) {
    tree.write(path, 200);
  } else {
    tree.fill(path);
  }
  return path;
}

// A file that gets a name once it is whole.
std::string link_unnamed(ChangedTree& tree) {
  const fs::path directory = tree.some_directory();
  const base::Descriptor open(::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (open.get() < 0) return {};
  ChangedTree::write_to(open, tree.random().bytes(tree.random().below(5000)));
  const fs::path path = tree.new_path_in(directory);
  const std::string unnamed = "/proc/self/fd/" + std::to_string(open.get());
  static_cast<void>(::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW));
  return path;
}

// Other changes move or remove it, before a later one writes to it.
std::string hold_open(ChangedTree& tree) {
  const fs::path file = tree.some_file();
  base::Descriptor open(::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (open.get() < 0) return {};
  ChangedTree::write_to(open, "held");
  tree.hold(std::move(open));
  return file;
}

std::string write_held(ChangedTree& tree) {
  const auto held = tree.take_held();
  if (held == nullptr) return hold_open(tree);
  const std::string link = "/proc/self/fd/" + std::to_string(held->get());
  const fs::path path = fs::read_symlink(link);
  ChangedTree::write_to(*held, "held and written");
  return path;
}

}  // namespace

std::vector<Change> file_changes() {
  return {{"write", "", write_file},
          {"overwrite", "", overwrite},
          {"truncate", "", truncate},
          {"fallocate", "", allocate},
          {"link within a directory", "", link_file},
          {"unlink of a further name", "", unlink_name},
          {"unlink", "", remove_file},
          {"rename of a file", "", move_file},
          {"setxattr", "", set_attribute},
          {"utimensat", "", set_times},
          {"symlink", "", make_symlink},
          {"mkfifo", "", make_fifo},
          {"another type", "", replace_by_type},
          {"O_TMPFILE and linkat", "", link_unnamed},
          {"open", "", hold_open},
          {"write to an open file", "", write_held}};
}

}  // namespace spoor::watch
