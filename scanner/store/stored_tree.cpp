#include "scanner/store/stored_tree.h"

#include <utility>

#include "tracker/paths/path.h"

namespace spoor::scanner {

base::Result<> StoredTree::seek_behind(std::string_view path) {
  has_begun_ = true;
  auto row = store_.find(parent_of_root_, "");
  for (tracker::ComponentCursor at(path); row && *row && at.next();) {
    const std::string name(at.component());
    go_below(**row, name);
    row = store_.find((*row)->id, name);
    path_ = tracker::join_path(path_, name);
  }
  if (!row) return row.error();
  if (*row) go_below(**row, std::nullopt);
  return {};
}

void StoredTree::go_below(const DirectoryRow& row, std::optional<std::string> after) {
  if (row.directories > 0) open_.push_back({StoredChildren(store_, row.id, std::move(after)), path_.size()});
}

void StoredTree::skip_below(const DirectoryRow& row) {
  if (row.directories > 0) open_.pop_back();
}

base::Result<std::optional<DirectoryRow>> StoredTree::next() {
  using Next = std::optional<DirectoryRow>;
  if (!std::exchange(has_begun_, true)) {
    auto root = store_.find(parent_of_root_, "");
    if (root && *root) go_below(**root, std::nullopt);
    return root;
  }
  for (; !open_.empty(); open_.pop_back()) {
    Level& level = open_.back();
    auto row = level.children.peek();
    if (!row) return row.error();
    if (*row == nullptr) continue;
    Next found(std::move(**row));
    level.children.pop();
    path_.resize(level.path_bytes);
    if (!path_.empty()) path_ += '/';
    path_ += found->name;
    go_below(*found, std::nullopt);
    return found;
  }
  return Next();
}

}  // namespace spoor::scanner
