#include "tests/watch/model_drive.h"

#include <sys/fanotify.h>

#include <algorithm>
#include <utility>

#include "tracker/paths/path.h"

namespace spoor::watch {
namespace {

constexpr std::size_t directories_max = 24;

bool covers(const std::set<std::string>& trees, const std::string& path) {
  return std::ranges::any_of(trees, [&](const std::string& tree) {
    return tree.empty() || path == tree || path.starts_with(tree + '/');
  });
}

}  // namespace

ModelDrive::ModelDrive(std::uint64_t seed) : random_(seed) { make(nullptr, ""); }

void ModelDrive::change() {
  switch (random_.below(9)) {
    case 0:
    case 1:
      return make_directory();
    case 2:
      return remove();
    case 3:
      return move();
    case 4:
      return exchange();
    case 5:
      return move_file();
    default:
      return write();
  }
}

void ModelDrive::listen(bool is_listening) {
  is_listening_ = is_listening;
  queue_.clear();
}

std::optional<Place> ModelDrive::resolve(const DirectoryHandle& handle) const {
  const auto found = std::ranges::find(alive_, handle, &Directory::id);
  if (found == alive_.end()) return {};
  return Place{path_of(**found)};
}

void ModelDrive::mark(const EventMarks& marks) {
  std::set<std::string> changed(marks.of(MarkKind::dir));
  changed.insert(marks.of(MarkKind::file).begin(), marks.of(MarkKind::file).end());
  changed.insert(marks.of(MarkKind::tree).begin(), marks.of(MarkKind::tree).end());
  trees_.insert(marks.of(MarkKind::tree).begin(), marks.of(MarkKind::tree).end());
  for (std::string path : changed) {
    for (; !path.empty(); path.erase(path.find('/') == std::string::npos ? 0 : path.rfind('/')))
      marked_.insert(path);
    marked_.insert("");
  }
}

void ModelDrive::scan() {
  if (std::exchange(has_gap_, false) || !known_) {
    known_ = read_all(*alive_.front());
  } else {
    visit(*alive_.front(), "", *known_);
  }
  marked_.clear();
  trees_.clear();
}

std::string ModelDrive::difference() const { return compare(*alive_.front(), *known_, ""); }

ModelDrive::Directory& ModelDrive::any() { return *alive_[random_.below(alive_.size())]; }

ModelDrive::Directory& ModelDrive::make(Directory* parent, const std::string& name) {
  auto& made = all_.emplace_back(std::make_unique<Directory>());
  made->id = "handle " + std::to_string(all_.size());
  while (std::ranges::find(alive_, made->inode, &Directory::inode) != alive_.end()) ++made->inode;
  made->parent = parent;
  made->name = name;
  if (parent != nullptr) parent->children[name] = made.get();
  alive_.push_back(made.get());
  return *made;
}

void ModelDrive::write() {
  Directory& in = any();
  ++in.version;
  report({FAN_MODIFY, {in.id, "file"}, {}});
}

void ModelDrive::move_file() {
  Directory& from = any();
  Directory& to = any();
  ++from.version;
  ++to.version;
  report({FAN_RENAME, {from.id, "file"}, EntryName{to.id, "file"}});
}

void ModelDrive::make_directory() {
  if (alive_.size() >= directories_max) return;
  Directory& parent = any();
  const std::string name = random_.letters(1, 'd');
  if (parent.children.contains(name)) return;
  make(&parent, name);
  report({FAN_CREATE | FAN_ONDIR, {parent.id, name}, {}});
}

void ModelDrive::remove() {
  Directory& gone = any();
  if (gone.parent == nullptr || !gone.children.empty()) return;
  gone.parent->children.erase(gone.name);
  report({FAN_DELETE | FAN_ONDIR, {gone.parent->id, gone.name}, {}});
  std::erase(alive_, &gone);
}

void ModelDrive::move() {
  Directory& moved = any();
  Directory& to = any();
  const std::string name = random_.letters(1, 'd');
  if (moved.parent == nullptr || is_below(to, moved) || to.children.contains(name)) return;
  const EntryName before{moved.parent->id, moved.name};
  moved.parent->children.erase(moved.name);
  moved.parent = &to;
  moved.name = name;
  to.children[name] = &moved;
  report({FAN_RENAME | FAN_ONDIR, before, EntryName{to.id, name}});
}

void ModelDrive::exchange() {
  Directory& one = any();
  Directory& other = any();
  if (one.parent == nullptr || other.parent == nullptr || is_below(one, other) || is_below(other, one))
    return;
  const EntryName first{one.parent->id, one.name};
  const EntryName second{other.parent->id, other.name};
  std::swap(one.parent, other.parent);
  std::swap(one.name, other.name);
  one.parent->children[one.name] = &one;
  other.parent->children[other.name] = &other;
  report({FAN_RENAME | FAN_ONDIR, first, second});
  report({FAN_RENAME | FAN_ONDIR, second, first});
}

// The kernel joins an event with an equal one that waits already.
void ModelDrive::report(KernelEvent event) {
  if (!is_listening_) return;
  if (std::ranges::find(queue_, event) != queue_.end() && random_.one_in(2)) return;
  queue_.push_back(std::move(event));
}

std::string ModelDrive::path_of(const Directory& directory) {
  if (directory.parent == nullptr) return "";
  return tracker::join_path(path_of(*directory.parent), directory.name);
}

bool ModelDrive::is_below(const Directory& inner, const Directory& outer) {
  return &inner == &outer || (inner.parent != nullptr && is_below(*inner.parent, outer));
}

ModelDrive::Known ModelDrive::read_all(const Directory& directory) {
  Known known{directory.id, directory.inode, directory.version, {}};
  for (const auto& [name, child] : directory.children) known.children[name] = read_all(*child);
  return known;
}

// As the scanner walks: an unmarked directory is skipped with all below it, an unknown one is read whole. Two
// directories with one inode and name are told apart where the directory is marked.
void ModelDrive::visit(const Directory& directory, const std::string& path, Known& known) const {
  const bool is_marked = marked_.contains(path);
  if (covers(trees_, path) || (is_marked && known.id != directory.id)) {
    known = read_all(directory);
    return;
  }
  if (!is_marked) return;
  known.version = directory.version;
  std::erase_if(known.children, [&](const auto& child) { return !directory.children.contains(child.first); });
  for (const auto& [name, child] : directory.children) {
    const auto before = known.children.find(name);
    if (before == known.children.end() || before->second.inode != child->inode) {
      known.children[name] = read_all(*child);
    } else {
      visit(*child, tracker::join_path(path, name), before->second);
    }
  }
}

std::string ModelDrive::compare(const Directory& directory, const Known& known, const std::string& path) {
  if (known.id != directory.id) return "another directory at '" + path + "'; ";
  std::string text = known.version == directory.version ? "" : "a change missed in '" + path + "'; ";
  if (known.children.size() != directory.children.size()) text += "other entries in '" + path + "'; ";
  for (const auto& [name, child] : directory.children) {
    const auto found = known.children.find(name);
    if (found != known.children.end()) text += compare(*child, found->second, tracker::join_path(path, name));
  }
  return text;
}

}  // namespace spoor::watch
