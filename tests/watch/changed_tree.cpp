#include "tests/watch/changed_tree.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

#include "tests/support/process.h"

namespace spoor::watch {
namespace {

namespace fs = std::filesystem;

// An absolute path has 4095 bytes at most; trees are moved below each other.
constexpr std::size_t directory_bytes_max = 500;
constexpr std::size_t depth_bytes_max = 700;
constexpr std::size_t tree_entries_max = 300;
constexpr std::size_t entries_max = 2500;
constexpr std::size_t held_max = 8;

// What Spoor and the test itself write to the top of the drive.
bool is_left_alone(const fs::path& name) {
  return name == ".spoor" || name == "lost+found" || name.native().starts_with("sync-");
}

bool is_real_directory(const fs::directory_entry& entry) {
  std::error_code gone;
  return entry.symlink_status(gone).type() == fs::file_type::directory;
}

bool is_taken(const fs::path& path) { return fs::symlink_status(path).type() != fs::file_type::not_found; }

}  // namespace

std::vector<fs::path> ChangedTree::directories(const fs::path& top) const {
  std::vector<fs::path> found;
  auto at = fs::recursive_directory_iterator(top);
  for (; at != fs::recursive_directory_iterator(); ++at) {
    const fs::path path = at->path();
    if (path.parent_path() == places_.drive && is_left_alone(path.filename())) {
      at.disable_recursion_pending();
    } else if (is_real_directory(*at)) {
      found.push_back(path);
    }
  }
  return found;
}

fs::path ChangedTree::some_directory() {
  auto all = directories(places_.drive);
  std::erase_if(all, [&](const fs::path& path) {
    return path.native().size() > places_.drive.native().size() + directory_bytes_max;
  });
  return all.empty() || random_.one_in(8) ? places_.drive : random_.pick(all);
}

bool ChangedTree::is_small(const fs::path& tree) const {
  std::size_t entries = 0;
  for (const auto& entry : fs::recursive_directory_iterator(tree)) {
    if (++entries > tree_entries_max) return false;
    if (entry.path().native().size() > tree.native().size() + depth_bytes_max) return false;
  }
  return true;
}

fs::path ChangedTree::some_tree() {
  constexpr int attempts_max = 20;
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    const fs::path tree = some_directory();
    if (tree != places_.drive && is_small(tree)) return tree;
  }
  const fs::path tree = new_path();
  fill(tree);
  return tree;
}

fs::path ChangedTree::some_file() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(some_directory())) {
    if (entry.symlink_status().type() == fs::file_type::regular && entry.hard_link_count() == 1)
      files.push_back(entry.path());
  }
  if (!files.empty()) return random_.pick(files);
  const fs::path file = new_path();
  write(file, random_.below(5000));
  return file;
}

// Every program of a test must handle these names.
std::string ChangedTree::new_name() {
  static const std::vector<std::string> odd{
      "-rf ",  "line\nbreak", "\n",    "Gr\xc3\xbcn", "\xff\xfe",   "#hash",          " blank ",
      "tab\t", "\\#012",      "[a]*?", "~",           "%n",         "quote\"'`$(id)", "\x1b[2J\r",
      "{x,y}", "!",           "...",   "a,b",         ";semicolon", "\xe2\x80\xae",   "\xc3"};
  if (random_.one_in(4)) return random_.pick(odd) + random_.letters(random_.below(3));
  if (random_.one_in(20)) return random_.letters(200);
  return random_.letters(random_.between(1, 3));
}

fs::path ChangedTree::new_path_in(const fs::path& directory) {
  for (;;) {
    const fs::path path = directory / new_name();
    if (!is_taken(path) && !is_left_alone(path.filename())) return path;
  }
}

fs::path ChangedTree::new_path_outside(const fs::path& tree) {
  constexpr int attempts_max = 20;
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    fs::path path = new_path();
    if (!(path.native() + '/').starts_with(tree.native() + '/')) return path;
  }
  return new_path_in(places_.drive);
}

fs::path ChangedTree::new_plain_path() {
  const fs::path directory = some_directory();
  for (;;) {
    const fs::path path = directory / ("p" + random_.letters(4));
    if (!is_taken(path)) return path;
  }
}

void ChangedTree::write(const fs::path& file, std::size_t bytes) {
  std::ofstream(file, std::ios::app | std::ios::binary) << random_.bytes(bytes);
}

void ChangedTree::write_to(const base::Descriptor& file, const std::string& bytes) {
  EXPECT_EQ(::write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
}

void ChangedTree::fill(const fs::path& directory) {
  std::vector<fs::path> made{directory};
  fs::create_directories(directory);
  for (std::uint64_t count = random_.below(6); count > 0; --count) {
    made.push_back(new_path_in(random_.pick(made)));
    fs::create_directory(made.back());
  }
  for (std::uint64_t count = random_.below(20); count > 0; --count) {
    write(new_path_in(random_.pick(made)), random_.below(3000));
  }
}

void ChangedTree::run(const std::vector<std::string>& command) {
  const auto result = support::run_command(command);
  if (result.code == 0) return;
  std::string words;
  for (const std::string& word : command) words += word + ' ';
  ADD_FAILURE() << words << "ended with " << result.code << ": " << result.err << result.out;
}

std::optional<fs::path> ChangedTree::removed() const {
  for (auto path = removed_.rbegin(); path != removed_.rend(); ++path) {
    // A link may have the name of a former directory above it.
    std::error_code gone;
    if (fs::canonical(path->parent_path(), gone) == path->parent_path() && !is_taken(*path)) return *path;
  }
  return std::nullopt;
}

void ChangedTree::pause() {
  if (pause_ && random_.one_in(4)) pause_();
}

void ChangedTree::hold(base::Descriptor descriptor) {
  if (held_.size() == held_max) held_.erase(held_.begin());
  held_.push_back(std::make_unique<base::Descriptor>(std::move(descriptor)));
}

std::unique_ptr<base::Descriptor> ChangedTree::take_held() {
  if (held_.empty()) return nullptr;
  const auto chosen = held_.begin() + static_cast<std::ptrdiff_t>(random_.below(held_.size()));
  auto descriptor = std::move(*chosen);
  held_.erase(chosen);
  return descriptor;
}

std::size_t ChangedTree::count_entries() const {
  std::size_t entries = 0;
  auto at = fs::recursive_directory_iterator(places_.drive);
  for (; at != fs::recursive_directory_iterator(); ++at) ++entries;
  return entries;
}

void ChangedTree::prune() {
  while (count_entries() > entries_max) {
    auto all = directories(places_.drive);
    std::erase_if(all, [&](const fs::path& path) { return path.parent_path() != places_.drive; });
    if (all.empty()) return;
    run({"rm", "-rf", random_.pick(all).native()});
  }
}

}  // namespace spoor::watch
