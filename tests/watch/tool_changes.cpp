#include <filesystem>

#include "tests/watch/random_changes.h"

namespace spoor::watch {
namespace {

namespace fs = std::filesystem;

std::string copy_tree(ChangedTree& tree) {
  const fs::path from = tree.some_tree();
  const fs::path to = tree.new_path_outside(from);
  tree.run({"cp", "-aT", "--reflink=auto", from.native(), to.native()});
  return to;
}

// Into a tree that is there. It fails where a directory and a file have one name.
std::string copy_over_tree(ChangedTree& tree) {
  const fs::path from = tree.some_tree();
  const fs::path to = tree.some_tree();
  if ((to.native() + '/').starts_with(from.native() + '/')) return {};
  tree.try_to_run({"cp", "-aT", from.native(), to.native()});
  return to;
}

std::string extract_tar(ChangedTree& tree) {
  const fs::path from = tree.some_tree();
  const std::string archive = tree.new_scratch();
  tree.run({"tar", "-cf", archive, "-C", from.native(), "."});
  const fs::path to = tree.random().one_in(2) ? from : tree.new_path_outside(from);
  fs::create_directories(to);
  if (tree.random().one_in(3)) {
    tree.run({"tar", "-xf", archive, "-C", to.native(), "--unlink-first", "--recursive-unlink"});
  } else {
    tree.run({"tar", "-xf", archive, "-C", to.native()});
  }
  fs::remove(archive);
  return to;
}

// From a tree outside of the drive that changes, so that a later run has to update and to delete.
std::string run_rsync(ChangedTree& tree) {
  const fs::path source = tree.places().scratch / "rsync-source";
  if (tree.random().one_in(4)) fs::remove_all(source);
  tree.fill(source);
  tree.write(source / "changed", tree.random().below(1000));
  const fs::path to = tree.random().one_in(2) ? tree.new_path() : tree.some_tree();
  static const std::vector<std::string> modes{"--whole-file", "--inplace", "--delay-updates", "--checksum"};
  tree.run({"rsync", "-a", "--delete", tree.random().pick(modes), source.native() + '/', to.native() + '/'});
  return to;
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

// An empty directory is what a directory can replace.
std::string move_tree_over_directory(ChangedTree& tree) {
  const fs::path from = tree.some_tree();
  std::vector<fs::path> empty;
  for (const fs::path& each : tree.directories(tree.places().drive)) {
    if (fs::is_empty(each) && !(each.native() + '/').starts_with(from.native() + '/')) empty.push_back(each);
  }
  fs::path to = empty.empty() ? tree.new_path_outside(from) : tree.random().pick(empty);
  fs::create_directories(to);
  tree.run({"mv", "-T", from.native(), to.native()});
  return from.native() + " over " + to.native();
}

std::string move_file_over_file(ChangedTree& tree) {
  const fs::path from = tree.some_file();
  const fs::path to = tree.some_file();
  if (from == to) return {};
  tree.run({"mv", "-fT", from.native(), to.native()});
  return from.native() + " over " + to.native();
}

std::string delete_by_find(ChangedTree& tree) {
  const fs::path top = tree.some_tree();
  // It fails at a directory that is not empty, and goes on.
  tree.try_to_run({"find", top.native(), "-mindepth", "1", "-name", "*[a-m]", "-delete"});
  return top;
}

std::string change_modes(ChangedTree& tree) {
  const fs::path top = tree.some_tree();
  tree.run({"chmod", "-R", tree.random().one_in(2) ? "g+w" : "o-r", top.native()});
  tree.run({"chown", "-Rh", tree.random().one_in(2) ? "1:1" : "0:0", top.native()});
  return top;
}

std::string edit_in_place(ChangedTree& tree) {
  const fs::path file = tree.some_file();
  tree.run({"sed", "-i", "-e", "1i\\line", file.native()});
  return file;
}

std::string compress(ChangedTree& tree) {
  const fs::path file = tree.new_plain_path();
  tree.write(file, tree.random().below(20'000));
  tree.run({"gzip", "-f", file.native()});
  tree.run({"install", "-m", "600", file.native() + ".gz", tree.new_plain_path().native()});
  return file;
}

std::string write_by_dd(ChangedTree& tree) {
  const fs::path file = tree.some_file();
  tree.run({"dd", "if=/dev/zero", "of=" + file.native(), "bs=1k", "status=none", "conv=notrunc",
            "count=" + std::to_string(tree.random().between(1, 20)),
            "seek=" + std::to_string(tree.random().below(20))});
  return file;
}

std::string extract_package(ChangedTree& tree) {
  const fs::path content = tree.places().scratch / "package";
  const std::string package = content.native() + ".deb";
  if (!fs::exists(package)) {
    fs::create_directories(content / "DEBIAN");
    for (const char* const name : {"usr/bin/program", "usr/lib/p/library", "etc/p.conf"}) {
      fs::create_directories((content / name).parent_path());
      tree.write(content / name, tree.random().below(3000));
    }
    tree.run({"sh", "-c",
              "printf 'Package: p\\nVersion: 1\\nArchitecture: all\\nMaintainer: m\\nDescription: d\\n' > $1",
              "sh", (content / "DEBIAN/control").native()});
    tree.run({"dpkg-deb", "--build", "-Znone", content.native(), package});
  }
  const fs::path to = tree.random().one_in(2) ? tree.new_plain_path() : tree.some_tree();
  tree.try_to_run({"dpkg-deb", "-x", package, to.native()});
  return to;
}

// A library is replaced by a rename.
std::string replace_archive(ChangedTree& tree) {
  const fs::path directory = tree.some_directory();
  const std::string library = directory / "lib.a";
  const fs::path member = tree.new_scratch();
  tree.write(member, tree.random().below(5000));
  tree.try_to_run({"ar", "rc", library, member.native()});
  return library;
}

}  // namespace

std::vector<Change> tool_changes() {
  return {{"cp -a", "", copy_tree},
          {"cp -a over a tree", "", copy_over_tree},
          {"tar -x", "tar", extract_tar},
          {"rsync", "rsync", run_rsync},
          {"rm -rf", "", remove_tree},
          {"the name of a removed directory", "", reuse_removed_name},
          {"mv of a tree", "", move_tree},
          {"mv of a tree over a directory", "", move_tree_over_directory},
          {"mv of a file over a file", "", move_file_over_file},
          {"find -delete", "", delete_by_find},
          {"chmod and chown -R", "", change_modes},
          {"sed -i", "", edit_in_place},
          {"gzip and install", "", compress},
          {"dd", "", write_by_dd},
          {"dpkg-deb -x", "dpkg-deb", extract_package},
          {"ar rc", "ar", replace_archive}};
}

}  // namespace spoor::watch
