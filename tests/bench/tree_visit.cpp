#include "tests/bench/tree_visit.h"

#include <dirent.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <string_view>

#include "tests/bench/descriptor.h"
#include "tests/bench/two_threads.h"

namespace spoor::bench {
namespace {

void look_at(int directory, const char* name) {
  struct statx status{};
  constexpr unsigned wanted = STATX_TYPE | STATX_SIZE | STATX_BLOCKS | STATX_MTIME | STATX_CTIME;
  if (::statx(directory, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, wanted, &status) != 0) {
    throw std::system_error(errno, std::system_category(), name);
  }
}

std::uint64_t visit_one(int parent, const std::string& path, Depth depth) {
  const Descriptor directory(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  std::uint64_t count = 1;
  std::vector<std::string> below;
  alignas(dirent64) std::array<char, 32 * 1024> buffer;  // not cleared: that would cost more than listing
  for (;;) {
    const ssize_t got = ::getdents64(directory.number(), buffer.data(), buffer.size());
    if (got < 0) throw std::system_error(errno, std::system_category(), path);
    if (got == 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      const auto& entry = *reinterpret_cast<const dirent64*>(buffer.data() + at);
      const std::string_view name = entry.d_name;
      if (entry.d_type != DT_DIR) {
        look_at(directory.number(), entry.d_name);
      } else if (depth == Depth::all_below && name != "." && name != "..") {
        below.emplace_back(name);
      }
      at += entry.d_reclen;
    }
  }
  for (const std::string& name : below) count += visit_one(directory.number(), name, depth);
  return count;
}

}  // namespace

std::uint64_t visit(const std::filesystem::path& tree, const std::vector<std::string>& paths, Depth depth) {
  const Descriptor root(AT_FDCWD, tree, O_RDONLY | O_DIRECTORY);
  std::atomic<std::uint64_t> count = 0;
  by_two_threads(paths.size(), [&](std::size_t i) { count += visit_one(root.number(), paths[i], depth); });
  return count;
}

}  // namespace spoor::bench
