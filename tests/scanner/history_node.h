// A scanned node that keeps a history, and reads it.
#pragma once

#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "scanner/usage/usage_query.h"
#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {

class HistoryNode : public ScannedNode {
 protected:
  explicit HistoryNode(std::vector<std::string> drives = {"drive"}) : ScannedNode(std::move(drives)) {
    options.history.keep = true;
  }

  // Time passes, and a scan records what changed. Returns its time.
  std::int64_t scan_after(std::chrono::seconds passed) {
    clock.advance(passed);
    const std::int64_t at = history_time(clock.wall_now());
    last = scan();
    return at;
  }

  HistoryPoints points(const std::string& path) {
    const auto found = query_history(*database, path, std::nullopt, std::numeric_limits<std::size_t>::max());
    EXPECT_TRUE(found) << found.error().message;
    return found ? found->points : HistoryPoints();
  }

  Usage usage_since(const std::string& path, std::int64_t since, std::uint64_t depth = 1,
                    UsageOrder order = UsageOrder::name) {
    UsageOptions asked;
    asked.depth = depth;
    asked.order = order;
    asked.since = wall_time(since);
    auto found = query_usage(*database, path, asked);
    EXPECT_TRUE(found && *found) << "nothing is known of '" << path << "'";
    return found && *found ? **found : Usage();
  }

  std::int64_t count(const std::string& query) { return database->handle().number(query); }

  ScanReport last;
};

}  // namespace spoor::scanner
