#include "tests/publish/tree_copy.h"

#include <set>

#include "base/printable.h"

namespace spoor::publish {

namespace fs = std::filesystem;

Tree tree_of(const fs::path& drive) {
  Tree tree;
  for (auto at = fs::recursive_directory_iterator(drive); at != fs::recursive_directory_iterator(); ++at) {
    const std::string path = at->path().lexically_relative(drive).native();
    if (path == ".spoor")
      at.disable_recursion_pending();
    else
      tree[path] = at->is_symlink() || !at->is_directory();
  }
  return tree;
}

std::string differences(const Tree& source, const Tree& copy) {
  std::string lines;
  const auto add_those_only_in = [&](const char* name, const Tree& tree, const Tree& other) {
    for (const auto& entry : tree) {
      const auto found = other.find(entry.first);
      if (found != other.end() && found->second == entry.second) continue;
      lines += "only in the " + std::string(name) + (entry.second ? ": file " : ": dir ") +
               base::printable(entry.first) + '\n';
    }
  };
  add_those_only_in("source", source, copy);
  add_those_only_in("copy", copy, source);
  return lines;
}

TreeCopy::TreeCopy(const std::vector<Event>& events) {
  for (const Event& event : events) apply(event);
}

// The root always exists.
void TreeCopy::apply(const Event& event) {
  if (event.kind == Event::Kind::scan) return;
  if (event.kind == Event::Kind::reset) {
    *this = {};
    return;
  }
  if (event.kind == Event::Kind::deleted || event.kind == Event::Kind::replaced) {
    const auto is_gone = [&](const auto& entry) {
      return event.path.empty() || entry.first == event.path || entry.first.starts_with(event.path + '/');
    };
    std::erase_if(tree_, is_gone);
    std::erase_if(scans_, is_gone);
  }
  if (event.kind == Event::Kind::deleted) return;
  scans_[event.path] = event.scan;
  if (!event.path.empty()) tree_[event.path] = event.is_file;
}

std::uint64_t TreeCopy::last_scan(const std::string& path) const {
  const auto found = scans_.find(path);
  return found == scans_.end() ? 0 : found->second;
}

std::vector<Event> without_repeats(const std::vector<Event>& events) {
  std::set<std::string> ids;
  std::vector<Event> first;
  for (const Event& event : events) {
    if (ids.insert(event.id).second) first.push_back(event);
  }
  return first;
}

std::string disorder_in(const std::vector<Event>& events) {
  std::map<std::string, std::uint64_t> scans;
  std::string lines;
  for (const Event& event : events) {
    // Follows the events of the file that took the place of a directory, with the scan that missed the
    // directory.
    if (event.kind == Event::Kind::replaced && event.is_file) continue;
    std::uint64_t& last = scans[event.path];
    if (event.scan < last) lines += event.id + " follows scan " + std::to_string(last) + '\n';
    last = event.scan;
  }
  return lines;
}

}  // namespace spoor::publish
