#include "tests/watch/tree_snapshot.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace spoor::watch {
namespace {

namespace fs = std::filesystem;

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + std::int64_t{time.tv_nsec};
}

EntryState look_at(const fs::path& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) {
    throw std::system_error(errno, std::system_category(), path.native());
  }
  return {status.st_mode & S_IFMT,
          static_cast<std::uint64_t>(status.st_size),
          nanoseconds(status.st_mtim),
          nanoseconds(status.st_ctim),
          status.st_ino,
          status.st_nlink};
}

bool differs(const EntryState& before, const EntryState& after) {
  if (before.type != after.type) return true;
  if (after.is_directory()) return false;
  if (before.size != after.size || before.mtime_ns != after.mtime_ns) return true;
  return before.links == 1 && after.links == 1 && before.ctime_ns != after.ctime_ns;
}

bool differ(const Entries& before, const Entries& after) {
  return !std::equal(before.begin(), before.end(), after.begin(), after.end(),
                     [](const auto& old_entry, const auto& new_entry) {
                       return old_entry.first == new_entry.first &&
                              !differs(old_entry.second, new_entry.second);
                     });
}

std::optional<std::string> parent_of(const std::string& path) {
  if (path.empty()) return std::nullopt;
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

}  // namespace

bool EntryState::is_directory() const { return S_ISDIR(type); }

TreeSnapshot take_snapshot(const fs::path& drive) {
  TreeSnapshot tree;
  std::vector<std::string> pending{""};
  while (!pending.empty()) {
    const std::string path = std::exchange(pending.back(), {});
    pending.pop_back();
    Entries& entries = tree[path];
    for (const auto& entry : fs::directory_iterator(drive / path)) {
      const std::string name = entry.path().filename().native();
      if (path.empty() && name == ".spoor") continue;
      const EntryState state = look_at(entry.path());
      entries.emplace(name, state);
      if (state.is_directory()) pending.push_back(path.empty() ? name : path + '/' + name);
    }
  }
  return tree;
}

std::set<std::string> changed_directories(const TreeSnapshot& before, const TreeSnapshot& after) {
  std::set<std::string> changed;
  for (const auto& [path, entries] : after) {
    const auto old = before.find(path);
    if (old == before.end() || differ(old->second, entries)) changed.insert(path);
  }
  return changed;
}

std::set<std::string> removed_directories(const TreeSnapshot& before, const TreeSnapshot& after) {
  std::set<std::string> removed;
  for (const auto& [path, entries] : before) {
    if (!after.contains(path)) removed.insert(path);
  }
  return removed;
}

std::map<std::string, support::TreeTotals> directory_totals(const TreeSnapshot& tree) {
  std::map<std::string, support::TreeTotals> totals;
  std::set<std::pair<std::string, ino_t>> linked;  // in the total of a directory, that of a file
  for (const auto& [path, entries] : tree) {
    for (std::optional<std::string> above = path; above; above = parent_of(*above)) {
      support::TreeTotals& total = totals[*above];
      for (const auto& [name, state] : entries) {
        ++(state.is_directory() ? total.dirs : total.files);
        const bool counts =
            S_ISREG(state.type) && (state.links == 1 || linked.emplace(*above, state.inode).second);
        if (counts) total.bytes += state.size;
      }
    }
  }
  return totals;
}

}  // namespace spoor::watch
