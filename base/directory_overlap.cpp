#include "base/directory_overlap.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <system_error>

namespace spoor::base {
namespace {

namespace fs = std::filesystem;

// The identity of a directory, independent of its path.
struct Place {
  dev_t device;
  ino_t inode;
  fs::path path;  // without symbolic links
};

std::optional<Place> find_place(const fs::path& directory) {
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0) return std::nullopt;
  std::error_code failure;
  fs::path real = fs::canonical(directory, failure);
  if (failure) return std::nullopt;
  return Place{status.st_dev, status.st_ino, std::move(real)};
}

bool is_same(const Place& one, const Place& other) {
  return one.device == other.device && one.inode == other.inode;
}

// A file system mounted below a drive is not part of the drive: no walk enters it.
bool is_inside(const Place& inner, const Place& outer) {
  return inner.device == outer.device &&
         std::ranges::mismatch(outer.path, inner.path).in1 == outer.path.end();
}

}  // namespace

std::string overlap_text(const DirectoryOverlap& overlap, const std::vector<fs::path>& drives) {
  return fmt::format("{} is {} {}: every file must be on one drive only; remove one of the two from `drives`",
                     drives[overlap.directory].native(), overlap.is_same ? "the same directory as" : "inside",
                     drives[overlap.other].native());
}

std::vector<DirectoryOverlap> find_overlaps(const std::vector<fs::path>& directories) {
  std::vector<std::optional<Place>> places;
  places.reserve(directories.size());
  for (const fs::path& directory : directories) places.push_back(find_place(directory));
  std::vector<DirectoryOverlap> overlaps;
  for (std::size_t one = 0; one < places.size(); ++one) {
    for (std::size_t other = 0; places[one] && other < places.size(); ++other) {
      if (other == one || !places[other]) continue;
      const bool same = is_same(*places[one], *places[other]);
      if (same ? other > one : !is_inside(*places[one], *places[other])) continue;
      overlaps.push_back({one, other, same});
      break;
    }
  }
  return overlaps;
}

}  // namespace spoor::base
