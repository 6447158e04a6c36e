#include "scanner/store/link_corrections.h"

#include <algorithm>
#include <vector>

#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr char separator = '\0';  // sorts before every byte of a name

// The key of the parent. The root has the empty key and no parent.
std::string_view parent_key(std::string_view key) {
  const std::size_t end = key.rfind(separator);
  return end == std::string_view::npos ? std::string_view() : key.substr(0, end);
}

bool holds(std::string_view key, std::string_view other) { return common_ancestor(key, other) == key; }

}  // namespace

std::string walk_key(std::string_view path) {
  std::string key(path);
  std::ranges::replace(key, '/', separator);
  return key;
}

std::string path_of_key(std::string_view key) {
  std::string path(key);
  std::ranges::replace(path, separator, '/');
  return path;
}

std::string_view common_ancestor(std::string_view key, std::string_view other) {
  if (key.empty() || other.empty()) return {};
  const auto [end, end_of_other] = std::ranges::mismatch(key, other);
  const bool is_whole = end == key.end() && (end_of_other == other.end() || *end_of_other == separator);
  if (is_whole) return key;
  const bool other_is_whole = end_of_other == other.end() && *end == separator;
  return other_is_whole ? other : parent_key(key.substr(0, static_cast<std::size_t>(end - key.begin())));
}

LinkCorrections::LinkCorrections(SqliteDatabase& database)
    : find_(database, "SELECT bytes, allocated FROM link_corrections WHERE drive = ?1 AND path = ?2"),
      put_(database, "REPLACE INTO link_corrections(drive, path, bytes, allocated) VALUES(?1, ?2, ?3, ?4)"),
      erase_(database, "DELETE FROM link_corrections WHERE drive = ?1 AND path = ?2"),
      erase_drive_(database, "DELETE FROM link_corrections WHERE drive = ?1") {}

bool LinkCorrections::are_in(SqliteDatabase& database) {
  return SqliteStatement(database, "SELECT 1 FROM link_corrections LIMIT 1").step();
}

LinkCorrection& LinkCorrections::at(std::int64_t drive, std::string_view key) {
  const auto [entry, is_new] = collected_.try_emplace({drive, std::string(key)});
  if (is_new) collected_bytes_ += sizeof(*entry) + key.size();
  return entry->second;
}

// In key order, each directory comes before those below it. A stack holds the ancestors of the current
// directory; one that is popped is written and added to the one above.
void LinkCorrections::write() {
  struct Open {
    std::int64_t drive;
    std::string_view key;
    LinkCorrection sum;
  };
  std::vector<Open> open;
  const auto leave = [&] {
    const Open left = open.back();
    open.pop_back();
    add(left.drive, left.key, left.sum);
    if (!left.key.empty()) open.back().sum.add(left.sum);
  };
  for (const auto& [place, difference] : collected_) {
    const auto& [drive, key] = place;
    while (!open.empty() && (open.back().drive != drive || !holds(open.back().key, key))) leave();
    if (open.empty()) open.push_back({drive, {}, {}});
    while (open.back().key.size() < key.size()) {
      const std::size_t from = open.back().key.empty() ? 0 : open.back().key.size() + 1;
      open.push_back({drive, std::string_view(key).substr(0, key.find(separator, from)), {}});
    }
    open.back().sum.add(difference);
  }
  while (!open.empty()) leave();
  collected_.clear();
  collected_bytes_ = 0;
}

void LinkCorrections::erase(std::int64_t drive) {
  std::erase_if(collected_, [&](const auto& entry) { return entry.first.first == drive; });
  erase_drive_.run(drive);
}

LinkCorrection LinkCorrections::find(std::int64_t drive, std::string_view key) {
  const SqliteStatement::Use use(find_, drive, key);
  if (!find_.step()) return {};
  return {static_cast<std::uint64_t>(find_.number(0)), static_cast<std::uint64_t>(find_.number(1))};
}

void LinkCorrections::add(std::int64_t drive, std::string_view key, const LinkCorrection& difference) {
  if (difference == LinkCorrection() || key.size() > tracker::path_bytes_max) return;
  if (on_change_) on_change_(key);
  LinkCorrection sum = find(drive, key);
  sum.add(difference);
  SqliteStatement& change = sum == LinkCorrection() ? erase_ : put_;
  const SqliteStatement::Use use(change, drive, key);
  if (sum != LinkCorrection()) {
    change.bind(3, static_cast<std::int64_t>(sum.bytes));
    change.bind(4, static_cast<std::int64_t>(sum.allocated));
  }
  change.run();
}

}  // namespace spoor::scanner
