#include "tests/support/tree_totals.h"

#include <sys/stat.h>

#include <ostream>
#include <set>
#include <utility>

namespace spoor::support {

std::ostream& operator<<(std::ostream& out, const TreeTotals& totals) {
  return out << totals.files << " files, " << totals.dirs << " directories, " << totals.bytes << " bytes";
}

TreeTotals walk_independently(const std::vector<std::filesystem::path>& drives) {
  TreeTotals totals;
  for (const auto& drive : drives) {
    std::set<std::pair<dev_t, ino_t>> linked;
    auto at = std::filesystem::recursive_directory_iterator(drive);
    for (; at != std::filesystem::recursive_directory_iterator(); ++at) {
      if (at.depth() == 0 && at->path().filename() == ".spoor") {
        at.disable_recursion_pending();
        continue;
      }
      const auto type = at->symlink_status().type();
      if (type == std::filesystem::file_type::directory) {
        ++totals.dirs;
      } else {
        ++totals.files;
        struct stat status{};
        if (::lstat(at->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
        if (status.st_nlink == 1 || linked.emplace(status.st_dev, status.st_ino).second) {
          totals.bytes += static_cast<std::uint64_t>(status.st_size);
        }
      }
    }
  }
  return totals;
}

}  // namespace spoor::support
