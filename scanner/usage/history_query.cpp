#include "scanner/usage/history_query.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

std::optional<base::WallTime> last_scan(SqliteDatabase& database) {
  SqliteStatement query(database, "SELECT started_at_ns FROM scans ORDER BY id DESC LIMIT 1");
  if (!query.step()) return std::nullopt;
  return base::WallTime(std::chrono::nanoseconds(query.number(0)));
}

}  // namespace

HistoryReader::HistoryReader(SqliteDatabase& database)
    : since_(number_setting(database, history_since_key, 0)),
      find_(database, select_history("parent = ?1 AND name = ?2")),
      children_(database, select_history("parent = ?1 ORDER BY name")) {
  const std::string counts = find_setting(database, history_counts_key).value_or("");
  is_full_ = !counts.empty() && !counts.ends_with(" 0");
}

std::optional<HistoryRow> HistoryReader::find(std::string_view path) {
  auto row = find_.find(read_history_row, HistoryStore::parent_of_root, std::string_view());
  for (tracker::ComponentCursor at(path); row && at.next();)
    row = find_.find(read_history_row, row->id, at.component());
  return row;
}

void HistoryReader::open(std::int64_t parent) {
  children_.reset();
  children_.bind(1, parent);
  step();
}

void HistoryReader::step() {
  row_.reset();
  if (children_.step()) row_ = read_history_row(children_);
}

base::Result<UsageHistory> query_history(UsageDatabase& database, std::string_view path,
                                         std::optional<base::WallTime> since, std::size_t count_max) {
  SqliteDatabase& handle = database.handle();
  return guarded("look up the history", handle, [&] {
    const SqliteTransaction one_view(handle, SqliteTransaction::Kind::reading);
    UsageHistory found;
    found.as_of = last_scan(handle);
    if (!has_history_tables(handle)) return found;
    HistoryReader reader(handle);
    found.recorded_since = wall_time(reader.since());
    found.is_full = reader.is_full();
    const auto row = reader.find(path);
    if (!row) return found;
    HistoryPoints& points = found.points;
    points = HistoryStore::points_of(*row);
    if (since) {
      const auto after = std::ranges::upper_bound(points, history_time(*since), {}, &HistoryPoint::at);
      if (after != points.begin()) points.erase(points.begin(), after - 1);
    }
    if (points.size() > count_max)
      points.erase(points.begin(), points.end() - static_cast<std::ptrdiff_t>(count_max));
    return found;
  });
}

}  // namespace spoor::scanner
