#include "scanner/store/owner_sums.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "base/number.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

// Of one directory, the rows of all drives are adjacent, by owner. Unsigned numbers are stored as the signed
// ones of the same bits.
constexpr const char* tables = R"sql(
CREATE TABLE owner_sums(
  path BLOB NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL, drive INTEGER NOT NULL,
  files INTEGER NOT NULL, bytes INTEGER NOT NULL, allocated INTEGER NOT NULL,
  PRIMARY KEY(path, uid, gid, drive)
) WITHOUT ROWID;
)sql";

constexpr std::size_t place_bytes = 160;  // in memory, beside the path
constexpr std::size_t owner_bytes = 80;

std::string_view first_components(std::string_view path, std::uint32_t count) {
  tracker::ComponentCursor at(path);
  while (count > 0 && at.next()) --count;
  return at.prefix();
}

Owners decode(const OwnerSums::Directory& directory) {
  auto owners = decode_owners(directory.owners, directory.own);
  if (!owners) throw SqliteError("the owners of a directory cannot be read", SQLITE_CORRUPT);
  return *std::move(owners);
}

OwnedTotals read_totals(const SqliteStatement& row, int index) {
  return {row.number<std::uint64_t>(index), row.number<std::uint64_t>(index + 1),
          row.number<std::uint64_t>(index + 2)};
}

}  // namespace

OwnerSums::OwnerSums(SqliteDatabase& database, std::uint32_t depth)
    : depth_(depth),
      last_(collected_.end()),
      has_any_(database, "SELECT 1 FROM owner_sums LIMIT 1"),
      find_(database,
            "SELECT files, bytes, allocated FROM owner_sums "
            "WHERE path = ?1 AND uid = ?2 AND gid = ?3 AND drive = ?4"),
      put_(database,
           "REPLACE INTO owner_sums(path, uid, gid, drive, files, bytes, allocated) "
           "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)"),
      erase_(database, "DELETE FROM owner_sums WHERE path = ?1 AND uid = ?2 AND gid = ?3 AND drive = ?4"),
      erase_drive_(database, "DELETE FROM owner_sums WHERE drive = ?1") {}

void OwnerSums::add(std::int64_t drive, std::string_view path, const Owner& owner,
                    const OwnedTotals& difference) {
  add_to(at(drive, path), owner, difference);
  if (collected_bytes_ > collected_bytes_max) write();
}

void OwnerSums::replace(std::int64_t drive, std::string_view path, const Directory& before,
                        const Directory& now) {
  const bool is_same = before.owners == now.owners && before.own.files == now.own.files &&
                       before.own.bytes == now.own.bytes && before.own.allocated == now.own.allocated;
  if (is_same) return;
  Owners& differences = at(drive, path);
  for (const auto& [owner, totals] : decode(before)) add_to(differences, owner, totals.negative());
  for (const auto& [owner, totals] : decode(now)) add_to(differences, owner, totals);
  if (collected_bytes_ > collected_bytes_max) write();
}

Owners& OwnerSums::at(std::int64_t drive, std::string_view path) {
  path = first_components(path, depth_);
  if (last_ != collected_.end() && last_->first.second == drive && last_->first.first == path)
    return last_->second;
  const auto [entry, is_new] = collected_.try_emplace({std::string(path), drive});
  if (is_new) collected_bytes_ += place_bytes + path.size();
  last_ = entry;
  return entry->second;
}

void OwnerSums::add_to(Owners& differences, const Owner& owner, const OwnedTotals& difference) {
  const auto [entry, is_new] = differences.try_emplace(owner);
  if (is_new) collected_bytes_ += owner_bytes;
  entry->second.add(difference);
}

void OwnerSums::erase_drive(std::int64_t drive) {
  std::erase_if(collected_, [&](const auto& entry) { return entry.first.second == drive; });
  last_ = collected_.end();
  erase_drive_.run(drive);
}

void OwnerSums::write() {
  last_ = collected_.end();
  add_to_parents();
  const bool may_be_known = has_any_.finds_row();
  for (const auto& [place, differences] : collected_) {
    for (const auto& [owner, difference] : differences) {
      if (difference != OwnedTotals()) put(place, owner, difference, may_be_known);
    }
  }
  collected_.clear();
  collected_bytes_ = 0;
}

// From the last path on, since each comes after the directory above it.
void OwnerSums::add_to_parents() {
  for (auto entry = collected_.end(); entry != collected_.begin();) {
    --entry;
    const auto& [path, drive] = entry->first;
    if (path.empty()) continue;
    Owners& above = collected_[Place(std::string(tracker::parent_path(path)), drive)];
    for (const auto& [owner, difference] : entry->second) above[owner].add(difference);
  }
}

void OwnerSums::put(const Place& place, const Owner& owner, const OwnedTotals& difference,
                    bool may_be_known) {
  const auto& [path, drive] = place;
  OwnedTotals sum = difference;
  if (may_be_known) {
    const SqliteStatement::Use use(find_, path, owner.uid, owner.gid, drive);
    if (find_.step()) sum.add(read_totals(find_, 0));
  }
  if (sum == OwnedTotals()) {
    erase_.run(path, owner.uid, owner.gid, drive);
    return;
  }
  put_.run(path, owner.uid, owner.gid, drive, sum.files, sum.bytes, sum.allocated);
}

std::string owners_setting(const OwnersKept& kept) { return fmt::format("{} {}", kept.depth, kept.scan); }

std::optional<OwnersKept> parse_owners_setting(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto depth = base::parse_number<std::uint32_t>(text.substr(0, space));
  const auto scan = base::parse_number<std::uint64_t>(text.substr(space + 1));
  if (!depth || !scan) return std::nullopt;
  return OwnersKept{*depth, *scan};
}

void create_owner_tables(SqliteDatabase& database) { database.exec(tables); }

void forget_owners(SqliteDatabase& database) {
  database.exec("DROP TABLE IF EXISTS owner_sums");
  database.exec("UPDATE directories SET owners = x'' WHERE owners <> x''");
  database.exec("UPDATE newer SET owners = x'' WHERE owners <> x''");
  database.exec("UPDATE links SET owner = NULL WHERE owner IS NOT NULL");
}

bool for_each_owner(SqliteDatabase& database, std::string_view path,
                    const std::function<bool(const OwnerEntry&)>& visit) {
  const auto setting = find_setting(database, owners_key);
  const auto kept = setting ? parse_owners_setting(*setting) : std::nullopt;
  const auto last = database.number("SELECT max(id) FROM scans");
  if (!kept || kept->scan != static_cast<std::uint64_t>(last) || first_components(path, kept->depth) != path)
    return false;
  SqliteStatement query(database,
                        "SELECT uid, gid, files, bytes, allocated FROM owner_sums WHERE path = ?1 "
                        "ORDER BY uid, gid");
  const SqliteStatement::Use use(query, path);
  std::optional<OwnerEntry> entry;
  while (query.step()) {
    const Owner owner{query.number<std::uint32_t>(0), query.number<std::uint32_t>(1)};
    if (entry && entry->owner != owner) {
      if (!visit(*entry)) return true;
      entry.reset();
    }
    if (!entry) entry = OwnerEntry{owner, {}};
    entry->totals.add(read_totals(query, 2));
  }
  if (entry) visit(*entry);
  return true;
}

}  // namespace spoor::scanner
