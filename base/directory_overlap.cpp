#include "base/directory_overlap.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <system_error>

namespace spoor::base {
namespace {

namespace fs = std::filesystem;

// The identity of a directory, independent of its path.
struct Place {
  dev_t device;
  ino_t inode;
  std::uint64_t mount;  // the device before Linux 5.8
  fs::path path;        // without symbolic links
};

std::optional<Place> find_place(const fs::path& directory) {
  struct statx status{};
  if (::statx(AT_FDCWD, directory.c_str(), 0, STATX_INO | STATX_MNT_ID, &status) != 0) return std::nullopt;
  std::error_code failure;
  fs::path real = fs::canonical(directory, failure);
  if (failure) return std::nullopt;
  const dev_t device = ::makedev(status.stx_dev_major, status.stx_dev_minor);
  const bool has_mount = (status.stx_mask & STATX_MNT_ID) != 0;
  return Place{device, status.stx_ino, has_mount ? status.stx_mnt_id : device, std::move(real)};
}

bool is_same(const Place& one, const Place& other) {
  return one.device == other.device && one.inode == other.inode;
}

// A file system mounted below a drive is not part of the drive: no walk enters it. A subvolume of btrfs is
// part of it. A bind mount may show what is.
bool is_inside(const Place& inner, const Place& outer) {
  return (inner.device == outer.device || inner.mount == outer.mount) &&
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
