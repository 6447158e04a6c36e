#include "scanner/store/directory_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "scanner/errors.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr std::size_t fetched_max = 512;

[[noreturn]] void fail(std::int64_t id) {
  throw SqliteError(fmt::format("the row of directory {} cannot be read", id), SQLITE_CORRUPT);
}

}  // namespace

DirectoryTables::DirectoryTables(SqliteDatabase& database)
    : database_(database),
      names_(database),
      newer_row_(database, "SELECT row, owners FROM newer WHERE id = ?1"),
      row_(database, "SELECT row, owners FROM directories WHERE id = ?1") {
  if (is_migratable(database)) old_.emplace(database);
}

DirectoryRow DirectoryTables::row_of(std::string_view name, const NamedDirectory& directory) {
  DirectoryRow row;
  const auto found = [&](SqliteStatement& query) {
    const SqliteStatement::Use use(query, directory.id);
    if (!query.step()) return false;
    if (!decode_row(query.blob(0), row)) fail(directory.id);
    row.owners = query.blob(1);
    return true;
  };
  if ((!has_newer_ || !found(newer_row_)) && !found(row_)) fail(directory.id);
  row.name = name;
  row.id = directory.id;
  row.inode = directory.inode;
  row.birth = directory.birth;
  return row;
}

std::optional<DirectoryRow> DirectoryTables::find(std::int64_t parent, std::string_view name) {
  if (old_) return old_->find(parent, name);
  const auto found = names_.find(parent, name);
  return found ? std::optional(row_of(name, *found)) : std::nullopt;
}

std::vector<DirectoryRow> DirectoryTables::children(std::int64_t parent,
                                                    const std::optional<std::string>& after,
                                                    std::size_t count_max, const WantsChild& wants) {
  if (old_) return old_->children(parent, after, count_max);
  std::vector<DirectoryRow> rows;
  names_.for_each(parent, after, [&](std::string_view name, const NamedDirectory& directory) {
    if (!wants || wants(name)) rows.push_back(row_of(name, directory));
    return rows.size() < count_max;
  });
  return rows;
}

std::optional<DirectoryRow> DirectoryTables::find_path(std::int64_t drive, std::string_view path) {
  auto row = find(parent_of_root(drive), "");
  for (tracker::ComponentCursor at(path); row && at.next();) row = find(row->id, at.component());
  return row;
}

DirectoryStore::DirectoryStore(SqliteDatabase& database, std::int64_t next_id)
    : DirectoryTables(database),
      put_(database, "REPLACE INTO directories(id, row, owners) VALUES(?1, ?2, ?3)"),
      put_newer_(database, "REPLACE INTO newer(id, row, owners) VALUES(?1, ?2, ?3)"),
      erase_(database, "DELETE FROM directories WHERE id = ?1"),
      erase_newer_(database, "DELETE FROM newer WHERE id = ?1"),
      next_id_(next_id),
      first_in_place_(next_id) {}

bool DirectoryStore::has_children(std::int64_t parent, const Subdirectories& found) {
  std::size_t same = 0;
  bool are_same = true;
  names_.for_each(parent, std::nullopt, [&](std::string_view name, const NamedDirectory& directory) {
    are_same = same < found.size() && found[same].name == name && found[same].inode == directory.inode;
    ++same;
    return are_same;
  });
  return are_same && same == found.size();
}

std::int64_t DirectoryStore::newest_below(const DirectoryRow& row) {
  std::int64_t newest = std::numeric_limits<std::int64_t>::min();
  names_.for_each(row.id, std::nullopt, [&](std::string_view name, const NamedDirectory& directory) {
    newest = std::max(newest, row_of(name, directory).subtree.mtime_ns);
    return true;
  });
  return newest;
}

void DirectoryStore::put(const DirectoryRow& row) {
  const bool is_in_place = row.id >= first_in_place_;
  SqliteStatement& put = is_in_place ? put_ : put_newer_;
  const std::string bytes = encode_row(row);
  put.run(row.id, std::string_view(bytes), std::string_view(row.owners));
  if (is_in_place) return;
  has_newer_ = true;
  ++put_apart_;
}

void DirectoryStore::put(std::int64_t parent, const DirectoryRow& row) {
  put(row);
  put_names(parent, {{row.name, named(row)}});
}

std::uint64_t DirectoryStore::erase(const DirectoryRow& row, const std::stop_token& stop) {
  std::uint64_t erased = 1;
  std::vector<std::int64_t> parents;
  if (row.directories > 0) parents.push_back(row.id);
  while (!parents.empty()) {
    throw_if_stopped(stop);
    const std::int64_t parent = parents.back();
    parents.pop_back();
    erase_children(parent, parents, erased);
  }
  erase_row(row.id);
  return erased;
}

// Adds the children that have children themselves to `parents`.
void DirectoryStore::erase_children(std::int64_t parent, std::vector<std::int64_t>& parents,
                                    std::uint64_t& erased) {
  names_.for_each(parent, std::nullopt, [&](std::string_view name, const NamedDirectory& directory) {
    if (row_of(name, directory).directories > 0) parents.push_back(directory.id);
    erase_row(directory.id);
    ++erased;
    return true;
  });
  names_.erase_all(parent);
}

void DirectoryStore::erase_row(std::int64_t id) {
  erase_.run(id);
  if (!has_newer_) return;
  const SqliteStatement::Use newer(erase_newer_, id);
  erase_newer_.run();
}

void DirectoryStore::merge() {
  first_in_place_ = 0;
  if (!has_newer_) return;
  merge_newer_rows(database_);
  has_newer_ = false;
}

void merge_newer_rows(SqliteDatabase& database) {
  database.exec("REPLACE INTO directories SELECT id, row, owners FROM newer ORDER BY id; DELETE FROM newer");
}

void create_directory_tables(SqliteDatabase& database, std::string_view rows) {
  database.exec(
      fmt::format("CREATE TABLE names(id INTEGER PRIMARY KEY, entries BLOB NOT NULL); "
                  "CREATE TABLE {}(id INTEGER PRIMARY KEY, row BLOB NOT NULL, owners BLOB NOT NULL); "
                  "CREATE TABLE newer(id INTEGER PRIMARY KEY, row BLOB NOT NULL, owners BLOB NOT NULL)",
                  rows));
}

DirectoryRow* ChildRows::peek() {
  if (at_ == fetched_.size() && !all_fetched_) {
    fetched_ = tables_->children(parent_, last_name_, fetched_max);
    at_ = 0;
    all_fetched_ = fetched_.size() < fetched_max;
    if (!fetched_.empty()) last_name_ = fetched_.back().name;
  }
  return at_ < fetched_.size() ? &fetched_[at_] : nullptr;
}

const std::string* JoinedChildren::peek() {
  const std::string* first = nullptr;
  for (ChildRows& rows : on_drives_) {
    const DirectoryRow* const row = rows.peek();
    if (row != nullptr && (first == nullptr || row->name < *first)) first = &row->name;
  }
  return first;
}

void JoinedChildren::take(const std::string& name,
                          const std::function<void(std::size_t parent, const DirectoryRow& row)>& visit) {
  for (std::size_t parent = 0; parent < on_drives_.size(); ++parent) {
    const DirectoryRow* const row = on_drives_[parent].peek();
    if (row == nullptr || row->name != name) continue;
    visit(parent, *row);
    on_drives_[parent].pop();
  }
}

StoredTree::StoredTree(DirectoryTables& tables, const DirectoryRow& row, std::string_view path)
    : tables_(tables), parent_of_root_(0), has_begun_(true), path_(path) {
  go_below(row, std::nullopt);
}

void StoredTree::seek_behind(std::string_view path) {
  has_begun_ = true;
  auto row = tables_.find(parent_of_root_, "");
  for (tracker::ComponentCursor at(path); row && at.next();) {
    const std::string name(at.component());
    go_below(*row, name);
    row = tables_.find(row->id, name);
    path_ = tracker::join_path(path_, name);
  }
  if (row) go_below(*row, std::nullopt);
}

void StoredTree::go_below(const DirectoryRow& row, std::optional<std::string> after) {
  if (row.directories > 0) open_.push_back({ChildRows(tables_, row.id, std::move(after)), path_.size()});
}

void StoredTree::skip_below(const DirectoryRow& row) {
  if (row.directories > 0) open_.pop_back();
}

std::optional<DirectoryRow> StoredTree::next() {
  if (!std::exchange(has_begun_, true)) {
    auto root = tables_.find(parent_of_root_, "");
    if (root) go_below(*root, std::nullopt);
    return root;
  }
  for (; !open_.empty(); open_.pop_back()) {
    Level& level = open_.back();
    DirectoryRow* const row = level.children.peek();
    if (row == nullptr) continue;
    DirectoryRow found = std::move(*row);
    level.children.pop();
    path_.resize(level.path_bytes);
    path_ = tracker::join_path(path_, found.name);
    go_below(found, std::nullopt);
    return found;
  }
  return std::nullopt;
}

}  // namespace spoor::scanner
