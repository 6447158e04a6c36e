#include "cli/scan_limits.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/url/encode.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/daemon_client.h"
#include "cli/format.h"
#include "cli/scan_hook.h"
#include "cli/stop_on_signal.h"
#include "cli/usage_report.h"
#include "scanner/report_json.h"

namespace spoor::cli {
namespace {

// The totals of all nodes, and their growth within a day.
base::Result<scanner::Usage> ask_cluster(DaemonClient& daemon, const std::string& path) {
  const auto json =
      daemon.exchange("GET", fmt::format("/v1/usage?absent=empty&scope=cluster&depth=0&since=24h&path={}",
                                         boost::urls::encode(path, boost::urls::unreserved_chars)));
  if (!json) return json.error();
  return scanner::usage_from_json(*json);
}

void measure(scanner::LimitState& state, const scanner::Usage& usage, std::uint64_t scan) {
  const scanner::UsageEntry& total = usage.total;
  state.complete = usage.is_complete(total);
  // Without all nodes, a limit is exceeded as long as it is not known to be kept.
  state.bytes = state.complete ? total.bytes : std::max(total.bytes, state.bytes);
  state.files = state.complete ? total.files : std::max(total.files, state.files);
  const bool is_growth_known = state.complete && total.growth && total.growth->complete;
  state.growth_per_day = is_growth_known ? std::optional(total.growth->bytes) : std::nullopt;
  state.scan = scan;
  state.forget_notified();
}

}  // namespace

std::vector<std::string> check_cluster_limits(const GlobalOptions& global, scanner::UsageDatabase& database,
                                              std::uint64_t scan, std::vector<scanner::LimitState>& limits) {
  std::vector<std::string> failures;
  std::optional<base::Result<DaemonClient>> daemon;
  for (scanner::LimitState& state : limits) {
    if (!state.limit.of_cluster) continue;
    if (!daemon) daemon.emplace(DaemonClient::create(global, {.timeout = cluster_timeout}));
    const auto usage = *daemon ? ask_cluster(**daemon, state.limit.path) : (*daemon).error();
    if (!usage) {
      // What does not respond is not asked for the others, too.
      failures.push_back(fmt::format("cannot compare the cluster's total of {} with its limit: {}",
                                     path_text(state.limit.path), usage.error().message));
      break;
    }
    measure(state, *usage, scan);
  }
  if (!daemon) return failures;
  if (auto stored = scanner::store_limits(database, limits); !stored)
    failures.push_back(stored.error().message);
  return failures;
}

LimitCommands run_limit_commands(const config::Config& config, scanner::UsageDatabase& database,
                                 std::vector<scanner::LimitState>& limits) {
  LimitCommands commands;
  const StopOnSignal stop;
  for (scanner::LimitState& state : limits) {
    if (config.usage.limit_command.empty() || state.not_notified().empty()) continue;
    const auto done = run_limit_command(config.usage.limit_command, config.node.name, state, stop.token());
    commands.was_stopped = stop.token().stop_requested();
    if (done) {
      const auto names = state.not_notified();
      state.notified.insert(state.notified.end(), names.begin(), names.end());
      if (auto stored = scanner::store_limits(database, limits); !stored)
        commands.failures.push_back(stored.error().message);
    } else {
      commands.failures.push_back(fmt::format("the limit of {}: {}; it runs again after the next scan",
                                              path_text(state.limit.path), done.error().message));
    }
    if (commands.was_stopped) break;
  }
  return commands;
}

}  // namespace spoor::cli
