#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "tests/watch/changed_tree.h"

namespace spoor::watch {
namespace {

namespace fs = std::filesystem;

bool is_below(const fs::path& path, const fs::path& top) {
  return (path.native() + '/').starts_with(top.native() + '/');
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

std::string set_attribute(ChangedTree& tree) {
  const fs::path path = tree.random().one_in(3) ? tree.some_tree() : tree.some_file();
  const std::string value = tree.random().letters(20);
  static_cast<void>(::setxattr(path.c_str(), "user.spoor", value.data(), value.size(), 0));
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

std::string remove_tree(ChangedTree& tree) {
  const fs::path removed = tree.some_tree();
  tree.run({"rm", "-rf", removed.native()});
  tree.remember_removed(removed);
  return removed;
}

// A directory, or something else, of the name that a directory had.
std::string reuse_removed_name(ChangedTree& tree) {
  const auto path = tree.removed();
  if (!path) return remove_tree(tree);
  if (tree.random().one_in(3)) {
    tree.write(*path, 100);
  } else {
    tree.fill(*path);
  }
  return *path;
}

std::string move_tree(ChangedTree& tree) {
  const fs::path from = tree.some_tree();
  const fs::path to = tree.new_path_outside(from);
  tree.run({"mv", "-T", from.native(), to.native()});
  tree.remember_removed(from);
  return from.native() + " to " + to.native();
}

std::string make_deep(ChangedTree& tree) {
  fs::path path = tree.new_path();
  const fs::path top = path;
  for (std::uint64_t depth = tree.random().between(2, 10); depth > 0; --depth)
    path /= tree.random().letters(tree.random().between(1, 20));
  tree.run({"mkdir", "-p", path.native()});
  tree.write(tree.new_path_in(path), 300);
  return top;
}

std::string exchange(ChangedTree& tree) {
  const fs::path one = tree.some_tree();
  const fs::path other = tree.random().one_in(3) ? tree.some_file() : tree.some_tree();
  if (is_below(one, other) || is_below(other, one)) return {};
  static_cast<void>(::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE));
  return one.native() + " and " + other.native();
}

// Changes between renames of several ancestors, each of which moves all that was found before.
std::string rename_ancestors(ChangedTree& tree) {
  const fs::path top = tree.new_path();
  fs::create_directories(top / "a/b/c");
  tree.write(top / "a/b/c/one", 10);
  fs::rename(top / "a", top / "a2");
  tree.pause();
  tree.write(top / "a2/b/c/two", 20);
  const fs::path away = tree.new_path_outside(top);
  fs::rename(top / "a2/b", away);
  tree.pause();
  tree.write(away / "c/three", 30);
  fs::create_directories(top / "a2/b/c");
  tree.write(top / "a2/b/c/four", 40);
  tree.pause();
  fs::rename(away / "c", top / "a2/c");
  tree.write(top / "a2/c/one", 50);
  return top.native() + " and " + away.native();
}

// The chain that a program makes of a tree that it replaces: old away, new in place, old removed.
std::string replace_by_renames(ChangedTree& tree) {
  const fs::path path = tree.some_tree();
  const fs::path fresh = tree.new_path_in(path.parent_path());
  tree.fill(fresh);
  const fs::path old = tree.new_path_in(path.parent_path());
  fs::rename(path, old);
  tree.pause();
  fs::rename(fresh, path);
  if (tree.random().one_in(2)) fs::remove_all(old);
  return path;
}

// There and back: the same path, and a change on the way.
std::string move_away_and_back(ChangedTree& tree) {
  const fs::path path = tree.some_tree();
  const fs::path away = tree.new_path_outside(path);
  fs::rename(path, away);
  tree.pause();
  tree.write(tree.new_path_in(away), 100);
  for (const fs::path& below : tree.directories(away)) {
    if (tree.random().one_in(3)) tree.write(tree.new_path_in(below), 100);
  }
  tree.pause();
  fs::rename(away, path);
  return path;
}

std::string write_to_renamed(ChangedTree& tree) {
  const fs::path path = tree.some_tree();
  const fs::path file = tree.new_path_in(path);
  tree.write(file, 10);
  base::Descriptor open(::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  const fs::path renamed = tree.new_path_outside(path);
  fs::rename(path, renamed);
  tree.pause();
  ChangedTree::write_to(open, "written after the rename");
  if (tree.random().one_in(2)) tree.hold(std::move(open));
  return path.native() + " to " + renamed.native();
}

// By the descriptor of a directory that is renamed meanwhile, as the *at() calls allow.
std::string create_in_renamed(ChangedTree& tree) {
  const fs::path path = tree.some_tree();
  const base::Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const fs::path renamed = tree.new_path_outside(path);
  fs::rename(path, renamed);
  const std::string name = tree.new_path_in(renamed).filename();
  const base::Descriptor file(::openat(directory.get(), name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ChangedTree::write_to(file, "created after the rename");
  return renamed;
}

// Out of the drive, where changes do not count, and perhaps back.
std::string move_out(ChangedTree& tree) {
  const fs::path path = tree.some_tree();
  const fs::path outside = tree.places().beside / tree.random().letters(8);
  fs::rename(path, outside);
  tree.pause();
  tree.write(tree.new_path_in(outside), 100);
  if (tree.random().one_in(2)) {
    fs::rename(outside, path);
  } else {
    tree.remember_removed(path);
  }
  return path;
}

std::string move_in(ChangedTree& tree) {
  for (const auto& entry : fs::directory_iterator(tree.places().beside)) {
    const fs::path path = tree.new_path();
    fs::rename(entry.path(), path);
    tree.write(tree.new_path_in(path), 100);
    return path;
  }
  return move_out(tree);
}

std::string exchange_with_outside(ChangedTree& tree) {
  const fs::path path = tree.some_tree();
  const fs::path outside = tree.places().beside / tree.random().letters(8);
  tree.fill(outside);
  static_cast<void>(::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, outside.c_str(), RENAME_EXCHANGE));
  return path;
}

// By another mount of the same directory.
std::string write_by_alias(ChangedTree& tree) {
  const fs::path alias = tree.places().alias;
  const fs::path directory = alias / tree.some_tree().lexically_relative(tree.places().drive);
  tree.write(tree.new_path_in(directory), 100);
  tree.fill(tree.new_path_in(directory));
  fs::rename(directory, alias / tree.new_path_in(tree.places().drive).filename());
  return directory;
}

}  // namespace

std::vector<Change> call_changes() {
  return {{"fallocate", "", allocate},
          {"setxattr", "", set_attribute},
          {"O_TMPFILE and linkat", "", link_unnamed},
          {"open", "", hold_open},
          {"write to an open file", "", write_held},
          {"rm -rf", "", remove_tree},
          {"the name of a removed directory", "", reuse_removed_name},
          {"mv of a tree", "", move_tree},
          {"mkdir -p", "", make_deep},
          {"RENAME_EXCHANGE", "", exchange},
          {"renames of ancestors", "", rename_ancestors},
          {"a tree replaced by renames", "", replace_by_renames},
          {"a tree moved away and back", "", move_away_and_back},
          {"a write to a file in a renamed directory", "", write_to_renamed},
          {"a file created in a renamed directory", "", create_in_renamed}};
}

std::vector<Change> border_changes() {
  return {{"a tree moved out of the drive", "", move_out},
          {"a tree moved into the drive", "", move_in},
          {"RENAME_EXCHANGE with a tree outside", "", exchange_with_outside},
          {"changes by another mount", "", write_by_alias}};
}

}  // namespace spoor::watch
