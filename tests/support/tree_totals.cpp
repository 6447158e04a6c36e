#include "tests/support/tree_totals.h"

#include <ostream>

namespace spoor::support {

std::ostream& operator<<(std::ostream& out, const TreeTotals& totals) {
  return out << totals.files << " files, " << totals.dirs << " directories, " << totals.bytes << " bytes";
}

TreeTotals walk_independently(const std::vector<std::filesystem::path>& drives) {
  TreeTotals totals;
  for (const auto& drive : drives) {
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
        if (type == std::filesystem::file_type::regular) totals.bytes += at->file_size();
      }
    }
  }
  return totals;
}

}  // namespace spoor::support
