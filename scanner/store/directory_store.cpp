#include "scanner/store/directory_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "scanner/errors.h"
#include "scanner/store/checksum_vfs.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr const char* columns =
    "name, id, inode, birth, state, read_scan, signature, own_files, own_bytes, own_allocated, own_mtime_ns, "
    "files, bytes, allocated, mtime_ns, directories, pending, mount_points, entries_signature, owners";

std::string replace() {
  return fmt::format(
      "REPLACE INTO directories(parent, {}) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
      "?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)",
      columns);
}

constexpr std::size_t fetched_max = 512;

// Stored in the column of the state.
constexpr std::int32_t racy_bit = 16;

Totals read_totals(const SqliteStatement& statement, int index) {
  return {statement.number<std::uint64_t>(index), statement.number<std::uint64_t>(index + 1),
          statement.number<std::uint64_t>(index + 2), statement.number(index + 3)};
}

}  // namespace

std::string select_directories(std::string_view rest) {
  return fmt::format("SELECT {} FROM directories WHERE {}", columns, rest);
}

DirectoryRow read_directory_row(const SqliteStatement& statement) {
  DirectoryRow row;
  row.name = statement.blob(0);
  row.id = statement.number(1);
  row.inode = statement.number<std::uint64_t>(2);
  row.birth = statement.number<std::uint32_t>(3);
  row.state = static_cast<DirectoryState>(statement.number(4) & ~racy_bit);
  row.is_racy = (statement.number(4) & racy_bit) != 0;
  row.read_scan = statement.number<std::uint64_t>(5);
  row.signature = statement.number<std::uint64_t>(6);
  row.own = read_totals(statement, 7);
  row.subtree = read_totals(statement, 11);
  row.directories = statement.number<std::uint64_t>(15);
  row.pending = statement.number<std::uint64_t>(16);
  row.mount_points = statement.number<std::uint64_t>(17);
  row.entries = statement.number<std::uint64_t>(18);
  row.owners = statement.blob(19);
  return row;
}

DirectoryStore::DirectoryStore(SQLite::Database& database, std::int64_t next_id)
    : database_(database),
      find_(database, select_directories("parent = ?1 AND name = ?2")),
      children_(database, select_directories("parent = ?1 AND name > ?2 ORDER BY name LIMIT ?3")),
      subdirectories_(database, "SELECT name, inode FROM directories WHERE parent = ?1 ORDER BY name"),
      newest_below_(database, "SELECT mtime_ns FROM directories WHERE parent = ?1"),
      erase_(database, "DELETE FROM directories WHERE parent = ?1 AND name = ?2"),
      parents_below_(database, "SELECT id FROM directories WHERE parent = ?1 AND directories > 0"),
      erase_children_(database, "DELETE FROM directories WHERE parent = ?1"),
      next_id_(next_id) {}

base::Result<std::optional<DirectoryRow>> DirectoryStore::find(std::int64_t parent, std::string_view name) {
  return guarded("look up a directory", database_, [&]() -> std::optional<DirectoryRow> {
    const SqliteStatement::Use use(find_, parent, name);
    if (!find_.step()) return std::nullopt;
    return read_directory_row(find_);
  });
}

base::Result<std::vector<DirectoryRow>> DirectoryStore::children(std::int64_t parent,
                                                                 const std::optional<std::string>& after,
                                                                 std::size_t count_max) {
  return guarded("list directories", database_, [&] {
    // Only a root has the empty name: every other name sorts after it.
    const std::string_view last = after ? std::string_view(*after) : std::string_view();
    const SqliteStatement::Use use(children_, parent, last, count_max);
    std::vector<DirectoryRow> rows;
    while (children_.step()) rows.push_back(read_directory_row(children_));
    return rows;
  });
}

base::Result<Subdirectories> DirectoryStore::subdirectories(std::int64_t parent) {
  return guarded("list directories", database_, [&] {
    const SqliteStatement::Use use(subdirectories_, parent);
    Subdirectories found;
    while (subdirectories_.step())
      found.add(subdirectories_.blob(0), subdirectories_.number<std::uint64_t>(1));
    return found;
  });
}

base::Result<std::int64_t> DirectoryStore::newest_below(const DirectoryRow& row) {
  return guarded("look up directories", database_, [&] {
    const SqliteStatement::Use use(newest_below_, row.id);
    std::int64_t newest = std::numeric_limits<std::int64_t>::min();
    while (newest_below_.step()) newest = std::max(newest, newest_below_.number(0));
    return newest;
  });
}

base::Result<> DirectoryStore::put(std::int64_t parent, const DirectoryRow& row) {
  return guarded("write a directory", database_, [&] {
    if (!put_) put_.emplace(database_, replace());
    // In the order of `columns`.
    const SqliteStatement::Use use(
        *put_, parent, row.name, row.id, row.inode, static_cast<std::int32_t>(row.birth),
        static_cast<std::int32_t>(row.state) | (row.is_racy ? racy_bit : 0), row.read_scan, row.signature,
        row.own.files, row.own.bytes, row.own.allocated, row.own.mtime_ns, row.subtree.files,
        row.subtree.bytes, row.subtree.allocated, row.subtree.mtime_ns, row.directories, row.pending,
        row.mount_points, row.entries, row.owners);
    put_->run();
  });
}

base::Result<std::uint64_t> DirectoryStore::erase(std::int64_t parent, const DirectoryRow& row,
                                                  const std::stop_token& stop) {
  auto below = erase_below(row, stop);
  if (!below) return below;
  return guarded("remove a directory", database_, [&] {
    const SqliteStatement::Use use(erase_, parent, row.name);
    return *below + erase_.run();
  });
}

base::Result<std::uint64_t> DirectoryStore::erase_below(const DirectoryRow& row,
                                                        const std::stop_token& stop) {
  std::uint64_t erased = 0;
  std::vector<std::int64_t> parents;
  if (row.directories > 0) parents.push_back(row.id);
  while (!parents.empty()) {
    if (stop.stop_requested()) return interrupted_error();
    const std::int64_t parent = parents.back();
    parents.pop_back();
    const auto children_erased = erase_children(parent, parents);
    if (!children_erased) return children_erased;
    erased += *children_erased;
  }
  return erased;
}

// Adds the children that have children themselves to `parents`.
base::Result<std::uint64_t> DirectoryStore::erase_children(std::int64_t parent,
                                                           std::vector<std::int64_t>& parents) {
  return guarded("remove directories", database_, [&] {
    const SqliteStatement::Use use_parents(parents_below_, parent);
    const SqliteStatement::Use use_erase(erase_children_, parent);
    while (parents_below_.step()) parents.push_back(parents_below_.number(0));
    return erase_children_.run();
  });
}

DirectorySnapshot::DirectorySnapshot(const std::string& file)
    : database_(std::make_unique<SQLite::Database>(file, SQLite::OPEN_READONLY | SQLite::OPEN_NOMUTEX, 0,
                                                   checksum_vfs())),
      transaction_(std::make_unique<SQLite::Transaction>(*database_)),
      store_(std::make_unique<DirectoryStore>(*database_, 0)) {}

std::optional<DirectorySnapshot> DirectorySnapshot::open(const std::string& file) {
  try {
    DirectorySnapshot snapshot(file);
    const bool is_log = snapshot.database_->execAndGet("PRAGMA journal_mode").getString() == "wal";
    return is_log ? std::optional(std::move(snapshot)) : std::nullopt;
  } catch (const SQLite::Exception&) {
    return std::nullopt;
  }
}

base::Result<DirectoryRow*> StoredChildren::peek() {
  if (at_ == fetched_.size() && !all_fetched_ && parent_ != 0) {
    auto rows = store_->children(parent_, last_name_, fetched_max);
    if (!rows) return rows.error();
    fetched_ = std::move(*rows);
    at_ = 0;
    all_fetched_ = fetched_.size() < fetched_max;
    if (!fetched_.empty()) last_name_ = fetched_.back().name;
  }
  return at_ < fetched_.size() ? &fetched_[at_] : nullptr;
}

StoredTree::StoredTree(DirectoryStore& store, const DirectoryRow& row, std::string_view path)
    : store_(store), parent_of_root_(0), has_begun_(true), path_(path) {
  go_below(row, std::nullopt);
}

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
