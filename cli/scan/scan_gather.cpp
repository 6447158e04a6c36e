#include "cli/scan/scan_gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/file_system.h"
#include "base/printable.h"
#include "cli/program/daemon_client.h"
#include "config/derived.h"
#include "peer/gather/gather_exchange.h"
#include "tracker/storage/instance_record.h"

namespace spoor::cli {
namespace {

using std::chrono::milliseconds;

// In limits of one peer: three rounds of six each, and as much behind a scan that was killed.
constexpr int timeouts_max = 40;
constexpr std::chrono::minutes margin{1};                              // for the DNS, etcd and merging
constexpr std::uint64_t response_bytes_max = std::uint64_t{1} << 30U;  // twice what the daemon gathers

// The instance that the daemon of this node wrote when it started.
base::Result<tracker::InstanceId> own_instance(const config::Config& config) {
  base::PosixFileSystem files;
  const auto record = tracker::read_instance_record(files, config.node.data_dir);
  if (!record) return record.error();
  if (*record) return (*record)->instance;
  return base::Error(std::make_error_code(std::errc::no_such_file_or_directory),
                     fmt::format("{} has no instance.json: no spoord has started with this node.data_dir",
                                 config.node.data_dir.native()));
}

// A clock that went back adds nothing.
milliseconds time_between(const std::optional<base::WallTime>& last, base::WallTime now) {
  return last && now > *last ? std::chrono::floor<milliseconds>(now - *last) : milliseconds(0);
}

base::Result<peer::Gathered> ask_daemon(const GlobalOptions& global, const config::Config& config,
                                        peer::GatherQuery query) {
  auto daemon =
      DaemonClient::create(global, timeouts_max * config.peers.timeout + margin, response_bytes_max);
  if (!daemon) return daemon.error();
  const auto instance = own_instance(config);
  if (!instance) return instance.error();
  query.instance = *instance;
  auto gathered = peer::read_gathered(daemon->send(peer::gather_request(daemon->endpoint(), query)));
  if (gathered) gathered->marks.unpack();
  return gathered;
}

// What a full scan walks without the daemon, which has the marks for the next one.
peer::Gathered nothing_gathered(const config::Config& config, const tracker::PeerBook& book,
                                const base::Error& why) {
  peer::Gathered gathered;
  gathered.book = book;
  gathered.peers.push_back({config.node.name, "", false, why.message});
  return gathered;
}

base::Error too_few_responses(const peer::Gathered& gathered, const std::string& note) {
  std::string why = "not every peer answered (scan.require is \"all\")";
  for (const auto& peer : gathered.peers) {
    if (!peer.ok) why += fmt::format("\n  {}: {}", base::printable(peer.name), base::printable(peer.error));
  }
  for (const std::string& source : gathered.unknown_sources) why += "\n  " + base::printable(source);
  if (!note.empty()) why += "\n  " + note;
  return {std::make_error_code(std::errc::host_unreachable), why};
}

}  // namespace

base::Result<GatheredMarks> gather_marks(const GlobalOptions& global, const config::Config& config,
                                         const StoredScan& stored, base::WallTime started_at, bool dry_run,
                                         bool full) {
  auto gathered = ask_daemon(global, config,
                             {.node = {config.node.cluster, config.node.name},
                              .members_digest = config::members_digest(config.peers),
                              .timeout = config.peers.timeout,
                              .options = {.rules_digest = config::namespace_rules(config).digest(),
                                          .min_cycle_age = config.scan.min_cycle_age,
                                          .forget_after = config.peers.forget_after,
                                          .own_only = config.scan.daemons == config::Daemons::own,
                                          .has_scanned = stored.started_at.has_value(),
                                          .since_last_scan = time_between(stored.started_at, started_at),
                                          .start_level = stored.start_level,
                                          .read_only = dry_run},
                              .book = stored.peers});
  const bool is_needed = config.scan.require == config::Require::all || !full;
  if (!gathered && is_needed) return base::wrap("the marks were not gathered", gathered.error());
  if (!gathered) gathered = nothing_gathered(config, stored.peers, gathered.error());
  const std::string note = fmt::format("{}", fmt::join(gathered->warnings, "; "));
  if (config.scan.require == config::Require::all && !gathered->complete())
    return too_few_responses(*gathered, note);
  return GatheredMarks{*std::move(gathered), note, started_at};
}

}  // namespace spoor::cli
