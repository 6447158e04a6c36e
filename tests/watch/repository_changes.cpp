#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "tests/watch/random_changes.h"

namespace spoor::watch {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t branch_count = 4;

std::string branch(std::uint64_t number) { return "branch" + std::to_string(number); }

// Without the settings of this machine, and without work in the background.
std::vector<std::string> git(const fs::path& repository, std::vector<std::string> arguments) {
  std::vector<std::string> command{"env", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"};
  for (const char* const who : {"AUTHOR", "COMMITTER"}) {
    command.push_back(std::string("GIT_") + who + "_NAME=test");
    command.push_back(std::string("GIT_") + who + "_EMAIL=test@example.com");
  }
  command.insert(command.end(),
                 {"git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "safe.directory=*"});
  if (!repository.empty()) {
    command.push_back("--git-dir=" + (repository / ".git").native());
    command.push_back("--work-tree=" + repository.native());
  }
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

void commit_all(ChangedTree& tree, const fs::path& repository) {
  tree.run(git(repository, {"add", "-A"}));
  tree.run(git(repository, {"commit", "-q", "--allow-empty", "-m", "state"}));
}

// With a different tree in each branch. Outside of the drive.
fs::path source_repository(ChangedTree& tree) {
  fs::path repository = tree.places().scratch / "repository";
  if (fs::exists(repository)) return repository;
  tree.run(git({}, {"init", "-q", repository.native()}));
  for (std::uint64_t number = 0; number < branch_count; ++number) {
    tree.run(git(repository, {"checkout", "-q", "--orphan", branch(number)}));
    for (int count = 0; count < 3; ++count) {
      const fs::path directory = repository / tree.random().letters(1, 'e') / tree.random().letters(1, 'e');
      fs::create_directories(directory);
      tree.write(directory / tree.random().letters(1, 'e'), tree.random().below(2000));
    }
    commit_all(tree, repository);
  }
  return repository;
}

void check_out_branches(ChangedTree& tree, const fs::path& clone) {
  for (std::uint64_t count = tree.random().between(1, 4); count > 0; --count) {
    const std::string name = branch(tree.random().below(branch_count));
    tree.try_to_run(git(clone, {"checkout", "-q", "-f", name}));
  }
}

// No links: git would make them across directories within a file system.
std::string clone(ChangedTree& tree) {
  const fs::path source = source_repository(tree);
  const fs::path to = tree.new_plain_path();
  tree.run(git({}, {"clone", "-q", "--no-hardlinks", source.native(), to.native()}));
  check_out_branches(tree, to);
  return to;
}

// git waits for a writer of a FIFO that another change has put among its files.
bool has_fifo(const fs::path& directory) {
  return std::ranges::any_of(fs::recursive_directory_iterator(directory),
                             [](const fs::directory_entry& entry) { return entry.is_fifo(); });
}

// A clone may have lost files to other changes by now.
std::string check_out_again(ChangedTree& tree) {
  for (const fs::path& directory : tree.directories(tree.places().drive)) {
    if (directory.filename() != ".git" || has_fifo(directory) || tree.random().one_in(3)) continue;
    check_out_branches(tree, directory.parent_path());
    return directory.parent_path();
  }
  return clone(tree);
}

std::string commit(ChangedTree& tree) {
  const fs::path repository = tree.new_plain_path();
  tree.run(git({}, {"init", "-q", repository.native()}));
  for (std::uint64_t count = tree.random().between(1, 3); count > 0; --count) {
    tree.write(repository / ("f" + tree.random().letters(1)), tree.random().below(2000));
    commit_all(tree, repository);
  }
  if (tree.random().one_in(2)) tree.run(git(repository, {"gc", "-q", "--prune=now"}));
  return repository;
}

const std::string fill_table =
    "CREATE TABLE IF NOT EXISTS t(x); BEGIN; INSERT INTO t VALUES(randomblob(3000)),(randomblob(50)); COMMIT;"
    "DELETE FROM t WHERE rowid % 5 = 0; INSERT INTO t SELECT x FROM t LIMIT 3;";

// At times the database is one of before, which other changes may have damaged.
std::string run_sqlite(ChangedTree& tree, const std::vector<std::string>& settings) {
  fs::path database = tree.new_plain_path().native() + ".sqlite";
  for (const fs::path& directory : tree.directories(tree.places().drive)) {
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (entry.path().extension() == ".sqlite" && tree.random().one_in(2)) database = entry.path();
    }
  }
  std::vector<std::string> command{"sqlite3", "-batch", database.native()};
  command.insert(command.end(), settings.begin(), settings.end());
  command.push_back(fill_table);
  tree.try_to_run(command);
  if (tree.random().one_in(3)) tree.try_to_run({"sqlite3", "-batch", database.native(), "VACUUM"});
  return database;
}

std::string write_with_wal(ChangedTree& tree) {
  // The log of some stays when the program ends, as after a crash.
  const std::string at_end = tree.random().one_in(2) ? "on" : "off";
  return run_sqlite(tree, {".dbconfig no_ckpt_on_close " + at_end, "PRAGMA journal_mode=WAL"});
}

std::string write_with_rollback(ChangedTree& tree) {
  static const std::vector<std::string> modes{"DELETE", "TRUNCATE", "PERSIST"};
  return run_sqlite(tree, {"PRAGMA journal_mode=" + tree.random().pick(modes)});
}

}  // namespace

std::vector<Change> repository_changes() {
  return {{"git clone and checkout", "git", clone},
          {"git checkout", "git", check_out_again},
          {"git init and commit", "git", commit},
          {"sqlite3, WAL", "sqlite3", write_with_wal},
          {"sqlite3, rollback", "sqlite3", write_with_rollback}};
}

}  // namespace spoor::watch
