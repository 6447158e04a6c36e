#include "scanner/usage/directory_totals.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "tracker/paths/path.h"

namespace spoor::scanner {

DirectoryTotals::DirectoryTotals(SqliteDatabase& database, KnownDirectories known)
    : known_(std::move(known)), directories_(database) {
  SqliteStatement drives(database, "SELECT id FROM drives ORDER BY id");
  while (drives.step()) {
    drives_.push_back({drives.number(0)});
    const auto root = directories_.find(DirectoryTables::parent_of_root(drives_.back().drive), "");
    if (root && root->state == DirectoryState::unread) unread_drives_.insert(drives_.back().drive);
  }
  if (LinkCorrections::are_in(database)) links_.emplace(database);
}

DirectoryTotal DirectoryTotals::find(std::string_view path) {
  DirectoryTotal total{.path = std::string(path)};
  for (DriveRows& rows : drives_) {
    const auto row = find_on(rows, path);
    // Below an unread directory, rows may be outdated or missing.
    if (!rows.above.empty() && rows.above.back().unread) total.unread = true;
    if (row) add(total, rows.drive, *row);
  }
  finish(total);
  return total;
}

void DirectoryTotals::add(DirectoryTotal& total, std::int64_t drive, const DirectoryRow& row) {
  const LinkCorrection links = links_ ? links_->find(drive, walk_key(total.path)) : LinkCorrection();
  HistoryFigures& figures = total.figures;
  figures.files = saturating_add(figures.files, row.subtree.files);
  figures.dirs = saturating_add(figures.dirs, row.directories);
  figures.bytes = saturating_add(figures.bytes, subtract_links(row.subtree.bytes, links.bytes));
  figures.allocated =
      saturating_add(figures.allocated, subtract_links(row.subtree.allocated, links.allocated));
  total.is_there = true;
  total.mtime_ns = std::max(total.mtime_ns, row.subtree.mtime_ns);
  total.complete = total.complete && row.pending == 0;
  if (!total.path.empty() && row.state == DirectoryState::unread) total.unread = true;
  if (row.id < known_.next_id || known_.unread_drives.contains(drive)) total.is_new = false;
  if (row.state != DirectoryState::mount_point) total.identities.push_back({drive, row.inode, row.birth});
  if (row.directories > 0) total.parents.push_back({drive, row.id});
}

void DirectoryTotals::finish(DirectoryTotal& total) const {
  total.all_read = !total.unread && unread_drives_.empty();
  total.complete = total.complete && total.all_read;
}

std::optional<DirectoryRow> DirectoryTotals::find_on(DriveRows& rows, std::string_view path) {
  auto& above = rows.above;
  while (!above.empty() && !is_below(path, std::string_view(rows.path).substr(0, above.back().path_bytes)))
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

void DirectoryTotals::for_each(
    const DirectoryTotal& top, std::uint64_t depth_max,
    const std::function<bool(const DirectoryTotal& total, std::uint64_t depth)>& visit) {
  std::deque<ChildTotals> open;
  const auto visit_and_open = [&](const DirectoryTotal& total) {
    if (!visit(total, open.size())) return false;
    if (open.size() < depth_max && !total.parents.empty()) open.emplace_back(*this, total);
    return true;
  };
  if (!top.is_there || !visit_and_open(top)) return;
  while (!open.empty()) {
    const auto child = open.back().next();
    if (!child) {
      open.pop_back();
    } else if (!visit_and_open(*child)) {
      return;
    }
  }
}

ChildTotals::ChildTotals(DirectoryTotals& totals, const DirectoryTotal& parent)
    : totals_(totals),
      path_(parent.path),
      unread_(parent.unread),
      parents_(parent.parents),
      rows_(totals.directories_, parents_) {}

DirectoryTotal ChildTotals::take(const std::string& name) {
  DirectoryTotal total{.path = tracker::join_path(path_, name), .unread = unread_};
  rows_.take(name, [&](std::size_t parent, const DirectoryRow& row) {
    totals_.add(total, parents_[parent].drive, row);
  });
  totals_.finish(total);
  return total;
}

std::optional<DirectoryTotal> ChildTotals::next() {
  const std::string* const name = peek();
  return name == nullptr ? std::nullopt : std::optional(take(std::string(*name)));
}

}  // namespace spoor::scanner
