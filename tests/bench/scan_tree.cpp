#include "tests/bench/scan_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <future>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <unordered_set>

#include "base/file_system.h"

namespace spoor::bench {
namespace {

namespace fs = std::filesystem;

// A path below `folder`, or AT_FDCWD: std::filesystem is too slow. Throws std::system_error.
base::Descriptor open_at(int folder, const std::string& path, int flags) {
  base::Descriptor opened(::openat(folder, path.c_str(), flags | O_CLOEXEC, 0644));
  if (opened.get() < 0) throw std::system_error(errno, std::system_category(), path);
  return opened;
}

// work(0) .. work(count - 1), shared out between two threads. Throws what one of them threw.
template <class Work>
void by_two_threads(std::size_t count, const Work& work) {
  std::atomic<std::size_t> next = 0;
  const auto acquire_all = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  auto other = std::async(std::launch::async, acquire_all);
  acquire_all();
  other.get();
}

constexpr std::uint64_t bucket_objects = 10'000;

// How prefixes fan out in a bucket, by turns: its objects lie at depth 3, 4, 5 or 6.
constexpr std::array<std::array<std::uint64_t, 4>, 4> fan_outs = {{
    {100},
    {10, 10},
    {4, 5, 10},
    {4, 5, 5, 4},
}};

constexpr std::array<std::string_view, ScanTree::files_max> file_names = {"object.meta", "part.1", "part.2",
                                                                          "part.3", "part.4"};

std::string bucket_name(std::uint64_t bucket) { return fmt::format("bucket-{:03}", bucket); }

std::string path_of(std::uint64_t object) {
  std::string path = bucket_name(object / bucket_objects);
  std::uint64_t rest = object % bucket_objects;
  std::uint64_t below = bucket_objects;
  for (const std::uint64_t fan_out : fan_outs[object / bucket_objects % fan_outs.size()]) {
    if (fan_out == 0) break;
    below /= fan_out;
    path += fmt::format("/prefix-{:02}", rest / below);
    rest %= below;
  }
  return path + fmt::format("/object-{:09}", object);
}

std::string content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Its files have a size, but no blocks: a million of them would take gigabytes.
void make_object(int prefix, const std::string& name, std::size_t files) {
  if (::mkdirat(prefix, name.c_str(), 0755) != 0) {
    throw std::system_error(errno, std::system_category(), name);
  }
  const base::Descriptor object = open_at(prefix, name, O_RDONLY | O_DIRECTORY);
  for (std::size_t i = 0; i < files; ++i) {
    const base::Descriptor file =
        open_at(object.get(), std::string(file_names[i]), O_WRONLY | O_CREAT | O_EXCL);
    if (::ftruncate(file.get(), static_cast<off_t>(1000 * i + 300)) != 0) {
      throw std::system_error(errno, std::system_category(), name);
    }
  }
}

void look_at(int directory, const char* name) {
  struct statx status{};
  constexpr unsigned wanted = STATX_TYPE | STATX_SIZE | STATX_BLOCKS | STATX_MTIME | STATX_CTIME;
  if (::statx(directory, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, wanted, &status) != 0) {
    throw std::system_error(errno, std::system_category(), name);
  }
}

std::uint64_t visit_one(int parent, const std::string& path, Depth depth) {
  const base::Descriptor directory = open_at(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  std::uint64_t count = 1;
  std::vector<std::string> below;
  alignas(dirent64) std::array<char, 32 * 1024> buffer;  // not cleared: that would cost more than listing
  for (;;) {
    const ssize_t got = ::getdents64(directory.get(), buffer.data(), buffer.size());
    if (got < 0) throw std::system_error(errno, std::system_category(), path);
    if (got == 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      const auto& entry = *reinterpret_cast<const dirent64*>(buffer.data() + at);
      const std::string_view name = entry.d_name;
      if (entry.d_type != DT_DIR) {
        look_at(directory.get(), entry.d_name);
      } else if (depth == Depth::all_below && name != "." && name != "..") {
        below.emplace_back(name);
      }
      at += entry.d_reclen;
    }
  }
  for (const std::string& name : below) count += visit_one(directory.get(), name, depth);
  return count;
}

}  // namespace

ScanTree::ScanTree(fs::path folder, std::uint64_t objects, std::size_t files, bool keep)
    : folder_(std::move(folder)), objects_(objects), files_(files), keep_(keep) {
  const std::string whole = fmt::format("{} objects of {} files\n", objects_, files_);
  if (content(marker()) == whole) return;
  fs::create_directories(folder_);
  if (!fs::exists(marker()) && !fs::is_empty(folder_)) {
    throw std::runtime_error(folder_.native() + " holds something else; give an empty folder with --dir");
  }
  // So that what is left of an interrupted run is known, and made anew.
  std::ofstream(marker()) << "not whole\n";
  make();
  std::ofstream(marker()) << whole;
}

ScanTree::~ScanTree() {
  if (keep_) return;
  const auto names = buckets();
  std::error_code ignored;  // there is nobody to hear of it
  by_two_threads(names.size(), [&](std::size_t bucket) {
    std::error_code also_ignored;
    fs::remove_all(drive() / names[bucket], also_ignored);
  });
  fs::remove_all(folder_, ignored);
}

void ScanTree::make() const {
  fs::remove_all(drive());
  fs::create_directory(drive());
  by_two_threads(buckets().size(), [this](std::size_t bucket) { make_bucket(bucket); });
}

void ScanTree::make_bucket(std::uint64_t bucket) const {
  fs::path prefix;
  std::optional<base::Descriptor> open_prefix;
  const std::uint64_t end = std::min((bucket + 1) * bucket_objects, objects_);
  for (std::uint64_t object = bucket * bucket_objects; object < end; ++object) {
    const fs::path path = path_of(object);
    if (path.parent_path() != prefix) {
      prefix = path.parent_path();
      fs::create_directories(drive() / prefix);
      open_prefix.emplace(open_at(AT_FDCWD, drive() / prefix, O_RDONLY | O_DIRECTORY));
    }
    make_object(open_prefix->get(), path.filename(), files_);
  }
}

std::vector<std::string> ScanTree::buckets() const {
  std::vector<std::string> names((objects_ + bucket_objects - 1) / bucket_objects);
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = bucket_name(i);
  return names;
}

std::vector<std::string> ScanTree::pick(std::uint64_t count, std::mt19937_64& random) const {
  std::unordered_set<std::uint64_t> numbers;
  while (numbers.size() < std::min(count, objects_)) numbers.insert(random() % objects_);
  std::vector<std::string> paths;
  paths.reserve(numbers.size());
  for (const std::uint64_t number : numbers) paths.push_back(path_of(number));
  return paths;
}

void ScanTree::change(const std::vector<std::string>& paths) const {
  const base::Descriptor open_drive = open_at(AT_FDCWD, drive(), O_RDONLY | O_DIRECTORY);
  for (const std::string& path : paths) {
    const std::string name = fmt::format("{}/{}", path, file_names.front());
    const base::Descriptor file = open_at(open_drive.get(), name, O_WRONLY | O_APPEND);
    if (::write(file.get(), "+", 1) != 1) throw std::system_error(errno, std::system_category(), name);
  }
}

std::uint64_t visit(const std::filesystem::path& tree, const std::vector<std::string>& paths, Depth depth) {
  const base::Descriptor root = open_at(AT_FDCWD, tree, O_RDONLY | O_DIRECTORY);
  std::atomic<std::uint64_t> count = 0;
  by_two_threads(paths.size(), [&](std::size_t i) { count += visit_one(root.get(), paths[i], depth); });
  return count;
}

}  // namespace spoor::bench
