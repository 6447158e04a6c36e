// Limits of directories from which a scan warns; nothing is enforced.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "scanner/history/history_options.h"
#include "scanner/store/usage_database.h"

namespace spoor::scanner {

// A limit as the last scan found it; one of the cluster, as the last scan that could ask for its totals.
struct LimitState {
  UsageLimit limit = {};
  std::uint64_t bytes = 0;  // 0 if the directory does not exist
  std::uint64_t files = 0;
  bool complete = true;  // as HistoryPoint::complete; otherwise the totals may be too small
  // In the 24 h before the scan. Nothing without a history, or if the totals now or then are not complete.
  std::optional<std::int64_t> growth_per_day;
  std::uint64_t scan = 0;  // that found it; 0: none yet
  std::vector<std::string> notified =
      {};  // of exceeded(): the command of usage.limit_command has run for these

  bool exceeds_bytes() const { return limit.bytes != 0 && bytes > limit.bytes; }
  bool exceeds_files() const { return limit.files != 0 && files > limit.files; }
  // If the history is shorter than 24 h, its growth alone may exceed the limit.
  bool exceeds_growth() const;
  bool is_exceeded() const { return exceeds_bytes() || exceeds_files() || exceeds_growth(); }
  // "bytes", "files", "growth_per_day".
  std::vector<std::string> exceeded() const;
  // Whether the totals of its directory were found, and all of them.
  bool is_known() const { return scan != 0 && complete; }
  std::vector<std::string> not_notified() const;  // those that are not in `notified`
  void forget_notified();                         // what is known to be no longer exceeded
};

// Compares the totals of this node with its limits, and stores the result; keeps what is known of those of
// the cluster. After the history was recorded, before the commit. Throws SqliteError.
std::vector<LimitState> check_limits(ScanTransaction& transaction, const std::vector<UsageLimit>& limits,
                                     base::WallTime started_at);

// As the last committed scan stored it; empty without limits.
base::Result<std::vector<LimitState>> read_limits(UsageDatabase& database);

// Replaces them between two scans. By the holder of the scan lock.
base::Result<> store_limits(UsageDatabase& database, const std::vector<LimitState>& states);

// As in the response to GET /v1/status.
nlohmann::ordered_json limits_json(const std::vector<LimitState>& states);
// Throws a json::exception if that is none.
std::vector<LimitState> limits_from_json(const nlohmann::ordered_json& json);

}  // namespace spoor::scanner
