#include "scanner/usage/directory_sums.h"

#include <utility>

#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

void add(DirectorySum& sum, std::int64_t drive, const DirectoryRow& row, const LinkCorrection& links) {
  sum.complete = sum.complete && row.pending == 0;
  HistoryFigures& figures = sum.figures;
  figures.files = saturating_add(figures.files, row.subtree.files);
  figures.dirs = saturating_add(figures.dirs, row.directories);
  figures.bytes = saturating_add(figures.bytes, subtract_links(row.subtree.bytes, links.bytes));
  figures.allocated =
      saturating_add(figures.allocated, subtract_links(row.subtree.allocated, links.allocated));
  if (row.state != DirectoryState::mount_point) sum.identities.push_back({drive, row.inode, row.birth});
}

// Whether `above` is an ancestor of `path`.
bool is_above(std::string_view above, std::string_view path) {
  if (above.empty()) return !path.empty();
  return path.size() > above.size() && path.starts_with(above) && path[above.size()] == '/';
}

// The directories below those of these rows, which have this path. The recursion is as deep as a history.
bool visit_below(DirectoryTables& directories, const std::vector<std::int64_t>& parents,
                 const std::string& path, std::uint32_t depth,
                 const std::function<bool(const std::string&)>& visit) {
  if (depth == 0) return true;
  JoinedChildren children(directories, parents);
  while (const std::string* const next = children.peek()) {
    const std::string name = *next;
    const std::string below = tracker::join_path(path, name);
    std::vector<std::int64_t> rows;
    children.take(name, [&](std::size_t, const DirectoryRow& row) {
      if (row.directories > 0) rows.push_back(row.id);
    });
    if (!visit(below) || !visit_below(directories, rows, below, depth - 1, visit)) return false;
  }
  return true;
}

}  // namespace

DirectorySums::DirectorySums(SqliteDatabase& database, KnownDirectories known)
    : known_(std::move(known)), directories_(database) {
  SqliteStatement drives(database, "SELECT id FROM drives ORDER BY id");
  while (drives.step()) {
    drives_.push_back({drives.number(0)});
    const auto root = directories_.find(DirectoryTables::parent_of_root(drives_.back().drive), "");
    if (root && root->state == DirectoryState::unread) unread_drives_.insert(drives_.back().drive);
  }
  if (LinkCorrections::are_in(database)) links_.emplace(database);
}

std::optional<DirectorySum> DirectorySums::find(std::string_view path) {
  DirectorySum sum;
  bool is_there = false;
  sum.complete = unread_drives_.empty();
  for (DriveRows& rows : drives_) {
    const auto row = find_on(rows, path);
    // Below an unread directory, rows may be outdated or missing.
    if (!rows.above.empty() && rows.above.back().unread) sum.unread = true;
    if (!row) continue;
    is_there = true;
    if (!path.empty() && row->state == DirectoryState::unread) sum.unread = true;
    if (row->id < known_.next_id || known_.unread_drives.contains(rows.drive)) sum.is_new = false;
    add(sum, rows.drive, *row, links_ ? links_->find(rows.drive, walk_key(path)) : LinkCorrection());
  }
  if (!is_there) return std::nullopt;
  sum.complete = sum.complete && !sum.unread;
  return sum;
}

std::optional<DirectoryRow> DirectorySums::find_on(DriveRows& rows, std::string_view path) {
  auto& above = rows.above;
  while (!above.empty() && !is_above(std::string_view(rows.path).substr(0, above.back().path_bytes), path))
    above.pop_back();
  // What is left of the former path is a part of this one.
  rows.path = path;
  if (above.empty()) {
    auto root = directories_.find(DirectoryTables::parent_of_root(rows.drive), "");
    if (!root || path.empty()) return root;
    above.push_back({0, root->id});
  }
  for (;;) {
    const std::size_t from = above.back().path_bytes == 0 ? 0 : above.back().path_bytes + 1;
    const std::size_t end = path.find('/', from);
    auto row = directories_.find(above.back().id, path.substr(from, end - from));
    if (!row || end == std::string_view::npos) return row;
    above.push_back({end, row->id, above.back().unread || row->state == DirectoryState::unread});
  }
}

void DirectorySums::for_each(std::uint32_t depth, const std::function<bool(const std::string&)>& visit) {
  std::vector<std::int64_t> roots;
  for (const DriveRows& rows : drives_) {
    const auto root = directories_.find(DirectoryTables::parent_of_root(rows.drive), "");
    if (root) roots.push_back(root->id);
  }
  if (!roots.empty() && visit("")) visit_below(directories_, roots, "", depth, visit);
}

}  // namespace spoor::scanner
