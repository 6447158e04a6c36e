#include "tests/publish/tree_copy.h"

#include <stdexcept>

#include "base/printable.h"

namespace spoor::publish {

namespace fs = std::filesystem;

Tree tree_of(const fs::path& drive) {
  Tree tree;
  for (auto at = fs::recursive_directory_iterator(drive); at != fs::recursive_directory_iterator(); ++at) {
    const std::string path = at->path().lexically_relative(drive).native();
    if (path == ".spoor") {
      at.disable_recursion_pending();
      continue;
    }
    tree[path] = at->is_symlink() || !at->is_directory();
  }
  return tree;
}

std::string differences(const Tree& source, const Tree& copy) {
  std::string lines;
  const auto add = [&](const char* what, const auto& entry) {
    lines += std::string(what) + (entry.second ? " file " : " dir ") + base::printable(entry.first) + '\n';
  };
  for (const auto& entry : source) {
    const auto found = copy.find(entry.first);
    if (found == copy.end() || found->second != entry.second) add("only in the source:", entry);
  }
  for (const auto& entry : copy) {
    const auto found = source.find(entry.first);
    if (found == source.end() || found->second != entry.second) add("only in the copy:", entry);
  }
  return lines;
}

// The root always exists.
void TreeCopy::apply(const StoredEvent& event) {
  if (event.change == "scan") return;
  if (event.change == "reset") {
    tree_.clear();
    scans_.clear();
    return;
  }
  if (event.change == "deleted" || event.change == "replaced") remove(event.path);
  if (event.change == "deleted") return;
  if (event.change != "new" && event.change != "changed" && event.change != "replaced")
    throw std::runtime_error("unknown change " + event.change);
  scans_[event.path] = event.scan;
  if (!event.path.empty()) tree_[event.path] = event.is_file;
}

void TreeCopy::remove(const std::string& path) {
  const auto erase_below = [&](auto& map) {
    map.erase(path);
    const std::string below = path.empty() ? "" : path + '/';
    for (auto at = map.lower_bound(below); at != map.end() && at->first.starts_with(below);)
      at = map.erase(at);
  };
  erase_below(tree_);
  erase_below(scans_);
}

std::uint64_t TreeCopy::last_scan(const std::string& path) const {
  const auto found = scans_.find(path);
  return found == scans_.end() ? 0 : found->second;
}

}  // namespace spoor::publish
