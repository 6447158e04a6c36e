#include "scanner/store/link_store.h"

#include <algorithm>
#include <utility>

#include "scanner/errors.h"

namespace spoor::scanner {
namespace {

// A row of `links` with this directory has the size of the file that was read last. Real ids start at 1.
constexpr std::int64_t no_directory = 0;
// A row of `link_changes` with this inode is of a drive that is_new.
constexpr std::uint64_t no_inode = 0;
constexpr std::size_t paths_bytes_max = 4U << 20U;
constexpr std::size_t erased_at_once = 64;

LinkCorrection read_size(const SqliteStatement& statement, int index) {
  return {statement.number<std::uint64_t>(index), statement.number<std::uint64_t>(index + 1)};
}

// The ids in the halves of one number; NULL is unknown.
std::optional<Owner> read_owner(const SqliteStatement& statement, int index) {
  if (statement.is_null(index)) return std::nullopt;
  const auto ids = statement.number<std::uint64_t>(index);
  return Owner{static_cast<std::uint32_t>(ids >> 32U), static_cast<std::uint32_t>(ids)};
}

std::uint64_t ids_of(const Owner& owner) { return std::uint64_t{owner.uid} << 32U | owner.gid; }

LinkCorrection times(const LinkCorrection& size, std::uint64_t count) {
  return {size.bytes * count, size.allocated * count};
}

LinkCorrection negative(const LinkCorrection& size) { return {-size.bytes, -size.allocated}; }

// The exclusive upper bound of all keys in the subtree.
std::string end_of_subtree(std::string_view key) { return std::string(key) + '\1'; }

}  // namespace

LinkStore::LinkStore(SqliteDatabase& database, std::size_t sorted_in_memory_max)
    : database_(database),
      sorted_in_memory_max_(sorted_in_memory_max),
      corrections_(database),
      has_any_(database, "SELECT 1 FROM link_directories WHERE drive = ?1 LIMIT 1"),
      find_directory_(database, "SELECT id FROM link_directories WHERE drive = ?1 AND path = ?2"),
      find_path_(database, "SELECT path FROM link_directories WHERE id = ?1"),
      add_directory_(database, "INSERT INTO link_directories(drive, path) VALUES(?1, ?2)"),
      erase_directory_(database, "DELETE FROM link_directories WHERE id = ?1"),
      directories_below_(database,
                         "SELECT id FROM link_directories WHERE drive = ?1 AND path >= ?2 AND path < ?3 "
                         "ORDER BY path LIMIT ?4"),
      kept_in_(database,
               "SELECT held.inode, held.bytes, held.allocated, held.owner, last.bytes, last.allocated, "
               "last.owner FROM links AS held "
               "JOIN links AS last ON last.drive = held.drive AND last.inode = held.inode "
               "AND last.directory = 0 WHERE held.directory = ?1 AND held.directory > 0"),
      put_(database,
           "INSERT INTO links(drive, inode, directory, bytes, allocated, owner) "
           "VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET bytes = ?4, allocated = ?5, owner = ?6 "
           "WHERE bytes <> ?4 OR allocated <> ?5 OR owner IS NOT ?6"),
      remove_(database, "DELETE FROM links WHERE drive = ?1 AND inode = ?2 AND directory = ?3"),
      touch_(database, "INSERT OR IGNORE INTO link_changes(drive, inode) VALUES(?1, ?2)"),
      touch_all_(database,
                 "INSERT OR IGNORE INTO link_changes(drive, inode) "
                 "SELECT drive, inode FROM links WHERE drive = ?1 AND directory = 0"),
      touched_(database, "SELECT drive, inode FROM link_changes WHERE inode <> 0"),
      forget_touched_(database, "DELETE FROM link_changes WHERE inode <> 0"),
      new_(database, "SELECT drive FROM link_changes WHERE inode = 0"),
      forget_new_(database, "DELETE FROM link_changes WHERE inode = 0"),
      holders_of_(database,
                  "SELECT directory, bytes, allocated, owner FROM links WHERE drive = ?1 AND inode = ?2 "
                  "ORDER BY directory LIMIT ?3"),
      holders_by_path_(database,
                       "SELECT at.path, held.bytes, held.allocated, held.owner FROM link_directories AS at "
                       "CROSS JOIN links AS held ON held.drive = at.drive AND held.inode = ?2 "
                       "AND held.directory = at.id WHERE at.drive = ?1 ORDER BY at.path") {}

void LinkStore::replace(std::int64_t drive, std::string_view path, const LinkedFiles& files, bool is_new) {
  State& state = state_of(drive);
  if (files.empty() && (is_new || state == State::empty)) return;
  const std::string key = walk_key(path);
  auto directory = state == State::empty ? std::nullopt : find_directory(drive, key);
  if (files.empty() && !directory) return;
  if (state == State::empty) state = State::is_new;
  if (!directory) directory = add_directory(drive, key);
  replace_links(drive, *directory, files);
  if (files.empty()) forget_directory(*directory);
}

void LinkStore::erase_below(std::int64_t drive, std::string_view path, const std::stop_token& stop) {
  if (path.empty()) return erase_drive(drive);
  if (state_of(drive) == State::empty) return;
  const std::string key = walk_key(path);
  for (;;) {
    const auto directories = some_below(drive, key);
    if (directories.empty()) return;
    for (const std::int64_t directory : directories) {
      throw_if_stopped(stop);
      replace_links(drive, directory, {});
      forget_directory(directory);
    }
  }
}

void LinkStore::erase_drive(std::int64_t drive) {
  corrections_.erase(drive);
  for (const char* const table : {"links", "link_changes", "link_directories"}) {
    SqliteStatement(database_, std::string("DELETE FROM ") + table + " WHERE drive = ?1", drive).run();
  }
  chain_ = {};
  paths_.clear();
  paths_bytes_ = 0;
  state_of(drive) = State::empty;
}

bool LinkStore::holds_any(std::int64_t drive, std::string_view path) {
  return state_of(drive) != State::empty && find_directory(drive, walk_key(path)).has_value();
}

void LinkStore::apply_corrections(const std::stop_token& stop, At at) {
  begin_or_leave_new(at);
  {
    const SqliteStatement::Use use(touched_);
    while (touched_.step()) {
      throw_if_stopped(stop);
      const std::int64_t drive = touched_.number(0);
      const std::uint64_t inode = touched_.number<std::uint64_t>(1);
      account(drive, inode, Sign::add);
      if (holders_.empty()) remove(drive, no_directory, inode);
    }
  }
  forget_touched_.run();
  chain_ = {};
  corrections_.write();
}

void LinkStore::begin_or_leave_new(At at) {
  {
    const SqliteStatement::Use use(new_);
    while (new_.step()) states_[new_.number(0)] = State::is_new;  // to the scan that this one resumes
  }
  for (auto& [drive, state] : states_) {
    if (state != State::is_new) continue;
    if (at == At::commit) {
      touch_.run(drive, no_inode);
    } else {
      touch_all_.run(drive);
      state = State::is_known;
    }
  }
  if (at == At::commit) return;
  forget_new_.run();
}

void LinkStore::on_change(std::function<void(std::string_view path)> on_change) {
  corrections_.on_change(
      [on_change = std::move(on_change)](std::string_view key) { on_change(path_of_key(key)); });
}

LinkStore::OwnedSize LinkStore::read_owned(const SqliteStatement& row) {
  return {read_size(row, 1), read_owner(row, 3)};
}

LinkStore::OwnedSize LinkStore::with_sign(OwnedSize owned, Sign sign) {
  if (sign == Sign::take_out) owned.size = negative(owned.size);
  return owned;
}

LinkStore::State& LinkStore::state_of(std::int64_t drive) {
  const auto [entry, is_first] = states_.try_emplace(drive, State::empty);
  if (is_first) {
    if (has_any_.finds_row(drive)) entry->second = is_new(drive) ? State::is_new : State::is_known;
  }
  return entry->second;
}

bool LinkStore::is_new(std::int64_t drive) {
  const SqliteStatement::Use use(new_);
  while (new_.step()) {
    if (new_.number(0) == drive) return true;
  }
  return false;
}

std::optional<std::int64_t> LinkStore::find_directory(std::int64_t drive, std::string_view key) {
  return find_directory_.find_number(drive, key);
}

std::int64_t LinkStore::add_directory(std::int64_t drive, std::string_view key) {
  add_directory_.run(drive, key);
  return sqlite3_last_insert_rowid(database_.handle());
}

// SQLite may reuse its id.
void LinkStore::forget_directory(std::int64_t directory) {
  paths_.erase(directory);
  chain_ = {};
  erase_directory_.run(directory);
}

const std::string& LinkStore::key_of(std::int64_t directory) {
  const auto known = paths_.find(directory);
  if (known != paths_.end()) return known->second;
  if (paths_bytes_ > paths_bytes_max) {
    paths_.clear();
    paths_bytes_ = 0;
  }
  const SqliteStatement::Use use(find_path_, directory);
  if (!find_path_.step()) throw SqliteError("a hard link has no directory", SQLITE_CORRUPT);
  const auto added = paths_.emplace(directory, find_path_.blob(0)).first;
  paths_bytes_ += sizeof(*added) + added->second.size();
  return added->second;
}

// Does not write rows that stay the same. The sizes in `files` are the newest ones for each inode.
void LinkStore::replace_links(std::int64_t drive, std::int64_t directory, const LinkedFiles& files) {
  const std::vector<Kept> kept = kept_in(directory);
  auto before = kept.begin();
  const auto remove_before = [&](std::uint64_t inode) {
    for (; before != kept.end() && before->file.inode < inode; ++before)
      remove(drive, directory, before->file.inode);
  };
  for (const LinkedFile& file : files) {
    remove_before(file.inode);
    const bool is_kept = before != kept.end() && before->file.inode == file.inode;
    const bool is_same = is_kept && before->file == file && before->last == file;
    if (is_kept) ++before;
    if (!is_same) put(drive, directory, file);
  }
  for (; before != kept.end(); ++before) remove(drive, directory, before->file.inode);
}

// By inode.
std::vector<LinkStore::Kept> LinkStore::kept_in(std::int64_t directory) {
  std::vector<Kept> kept;
  const SqliteStatement::Use use(kept_in_, directory);
  while (kept_in_.step()) {
    const auto inode = kept_in_.number<std::uint64_t>(0);
    const LinkCorrection own = read_size(kept_in_, 1);
    const LinkCorrection last = read_size(kept_in_, 4);
    kept.push_back({{inode, own.bytes, own.allocated, read_owner(kept_in_, 3)},
                    {inode, last.bytes, last.allocated, read_owner(kept_in_, 6)}});
  }
  std::ranges::sort(kept, {}, [](const Kept& each) { return each.file.inode; });
  return kept;
}

void LinkStore::put(std::int64_t drive, std::int64_t directory, const LinkedFile& file) {
  touch(drive, file.inode);
  for (const std::int64_t at : {directory, no_directory}) {
    const SqliteStatement::Use use(put_, drive, file.inode, at, file.bytes, file.allocated);
    if (file.owner) put_.bind(6, ids_of(*file.owner));
    put_.run();
  }
}

void LinkStore::remove(std::int64_t drive, std::int64_t directory, std::uint64_t inode) {
  touch(drive, inode);
  remove_.run(drive, inode, directory);
}

std::vector<std::int64_t> LinkStore::some_below(std::int64_t drive, std::string_view key) {
  return directories_below_.read_all([](const SqliteStatement& row) { return row.number(0); }, drive, key,
                                     end_of_subtree(key), erased_at_once);
}

void LinkStore::touch(std::int64_t drive, std::uint64_t inode) {
  if (state_of(drive) == State::is_new) return;
  if (touch_.run(drive, inode) == 0) return;
  account(drive, inode, Sign::take_out);
}

// The first row of the query has the size.
void LinkStore::account(std::int64_t drive, std::uint64_t inode, Sign sign) {
  OwnedSize last;
  holders_.clear();
  {
    const SqliteStatement::Use use(holders_of_, drive, inode,
                                   static_cast<std::int64_t>(sorted_in_memory_max_) + 2);
    if (!holders_of_.step()) return;
    last = read_owned(holders_of_);
    while (holders_of_.step()) holders_.push_back({holders_of_.number(0), read_owned(holders_of_)});
  }
  last = with_sign(last, sign);
  if (holders_.size() > sorted_in_memory_max_) {
    account_many(drive, inode, last, sign);
  } else {
    account_sorted(drive, last, sign);
  }
  if (!corrections_.is_to_be_written()) return;
  chain_ = {};
  corrections_.write();
}

// The size in `last` has the sign applied.
void LinkStore::account_sorted(std::int64_t drive, const OwnedSize& last, Sign sign) {
  if (!std::ranges::equal(chain_.directories, holders_, {}, {}, &Holder::directory)) make_chain(drive);
  for (const Chain::Shared& shared : chain_.shared) {
    shared.above->add(times(last.size, shared.count));
    correct_owner(drive, shared.key, last, shared.count);
  }
  for (const Holder& holder : holders_) {
    const OwnedSize own = with_sign(holder.own, sign);
    if (own != last) account_own(drive, key_of(holder.directory), own, last);
  }
}

// The directory's own totals have the size and the owner as they were read there, not those read last.
void LinkStore::account_own(std::int64_t drive, std::string_view key, const OwnedSize& own,
                            const OwnedSize& last) {
  LinkCorrection excess = own.size;
  excess.add(negative(last.size));
  if (excess != LinkCorrection()) corrections_.at(drive, key).add(excess);
  if (own.owner == last.owner) return correct_owner(drive, key, {excess, last.owner}, 1);
  correct_owner(drive, key, own, 1);
  correct_owner(drive, key, {negative(last.size), last.owner}, 1);
}

void LinkStore::correct_owner(std::int64_t drive, std::string_view key, const OwnedSize& excess,
                              std::uint64_t count) {
  if (owners_ == nullptr || !excess.owner || excess.size == LinkCorrection()) return;
  const LinkCorrection difference = negative(times(excess.size, count));
  owners_->add(drive, path_of_key(key), *excess.owner, {0, difference.bytes, difference.allocated});
}

void LinkStore::make_chain(std::int64_t drive) {
  std::vector<std::string> keys;
  chain_ = {};
  for (const Holder& holder : holders_) {
    chain_.directories.push_back(holder.directory);
    if (holders_.size() > 1) keys.push_back(key_of(holder.directory));
  }
  std::ranges::sort(keys);
  for (std::size_t number = 1; number < keys.size(); ++number) {
    const std::string_view key = common_ancestor(keys[number - 1], keys[number]);
    LinkCorrection* const above = &corrections_.at(drive, key);
    if (chain_.shared.empty() || chain_.shared.back().above != above)
      chain_.shared.push_back({above, std::string(key), 0});
    ++chain_.shared.back().count;
  }
}

// For more holders than are sorted in memory: SQLite returns them in key order.
void LinkStore::account_many(std::int64_t drive, std::uint64_t inode, const OwnedSize& last, Sign sign) {
  const SqliteStatement::Use use(holders_by_path_, drive, inode);
  std::optional<std::string> former;
  while (holders_by_path_.step()) {
    std::string key(holders_by_path_.blob(0));
    if (former) {
      const std::string_view above = common_ancestor(*former, key);
      corrections_.at(drive, above).add(last.size);
      correct_owner(drive, above, last, 1);
    }
    account_own(drive, key, with_sign(read_owned(holders_by_path_), sign), last);
    if (corrections_.is_to_be_written()) {
      chain_ = {};
      corrections_.write();
    }
    former = std::move(key);
  }
}

}  // namespace spoor::scanner
