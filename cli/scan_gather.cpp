#include "cli/scan_gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "base/file_system.h"
#include "base/printable.h"
#include "cli/etcd_connection.h"
#include "config/derived.h"
#include "peer/http/http_transport.h"
#include "peer/membership/dns_members.h"
#include "peer/membership/etcd_members.h"
#include "peer/membership/membership.h"
#include "tracker/storage/instance_record.h"

namespace spoor::cli {
namespace {

using std::chrono::milliseconds;

constexpr unsigned attempts_max = 3;  // per peer: it may be restarting
constexpr int round_timeouts = 6;     // the time limit of all peers together, in limits of one peer

// The instance that the daemon of this node wrote when it started.
base::Result<tracker::InstanceId> own_instance(const config::Config& config) {
  base::PosixFileSystem files;
  const auto record = tracker::read_instance_record(files, config.node.data_dir);
  if (!record) return record.error();
  if (*record) return (*record)->instance;
  return base::Error(std::make_error_code(std::errc::no_such_file_or_directory),
                     fmt::format("{} has no instance.json", config.node.data_dir.native()));
}

base::Result<peer::HttpTransport::Options> transport_options(const GlobalOptions& global,
                                                             const config::Config& config,
                                                             const peer::MembershipView& members) {
  auto peers = config.peers;
  if (!global.token_file.empty()) peers.token_file = global.token_file;
  auto credentials = peer_credentials(peers);
  if (!credentials) return credentials.error();
  if (!peers.token_to_all) credentials->trusted_urls = members.named_urls;
  return peer::HttpTransport::Options{.credentials = *credentials,
                                      .timeout = peers.timeout,
                                      .total_timeout = round_timeouts * peers.timeout,
                                      .attempts_max = attempts_max};
}

base::Result<std::vector<peer::SourceListing>> list_members(const config::Config& config,
                                                            const base::Clock& clock) {
  peer::DnsMembers dns(std::make_shared<peer::DnsResolver>(peer::DnsResolver::Options{
                           .servers = config.peers.dns_servers, .timeout = config.peers.timeout}),
                       {.names = config.peers.dns, .is_tls = config.peers.dns_tls});
  auto listings = dns.list();
  if (!config.peers.etcd) return listings;
  auto connection = EtcdConnection::open(config, clock);
  if (!connection) return connection.error();
  peer::EtcdMembers etcd((*connection)->client, (*connection)->location,
                         config::advertised_url(config).value());
  std::ranges::move(etcd.list(), std::back_inserter(listings));
  return listings;
}

// A clock that went back adds nothing.
milliseconds time_between(const std::optional<base::WallTime>& last, base::WallTime now) {
  return last && now > *last ? std::chrono::floor<milliseconds>(now - *last) : milliseconds(0);
}

base::Error too_few_responses(const config::Config& config, const peer::Gathered& gathered,
                              const std::string& note) {
  std::string why = config.scan.require == config::Require::all
                        ? "not every peer answered (scan.require is \"all\")"
                        : "no peer answered, not even this node's daemon";
  for (const auto& peer : gathered.peers) {
    if (!peer.ok) why += fmt::format("\n  {}: {}", base::printable(peer.name), base::printable(peer.error));
  }
  for (const std::string& source : gathered.unknown_sources) why += "\n  " + base::printable(source);
  if (!note.empty()) why += "\n  " + note;
  return {std::make_error_code(std::errc::host_unreachable), why};
}

}  // namespace

base::Result<GatheredMarks> gather_marks(const GlobalOptions& global, const config::Config& config,
                                         const base::Clock& clock, const StoredScan& stored,
                                         base::WallTime started_at, bool dry_run, bool full) {
  auto own = global.url ? base::parse_endpoint(*global.url) : config::own_endpoint(config);
  if (!own) return own.error();
  const bool own_only = config.scan.daemons == config::Daemons::own;
  const auto listings =
      own_only ? base::Result<std::vector<peer::SourceListing>>() : list_members(config, clock);
  if (!listings) return listings.error();
  const auto members = peer::merge_members(
      *own, own_only ? std::vector<base::Endpoint>() : config.peers.static_endpoints, *listings);
  const auto transport_of = transport_options(global, config, members);
  if (!transport_of) return transport_of.error();
  peer::HttpTransport transport(*transport_of);

  auto gathered = peer::gather(transport, stored.peers,
                               {.members = members,
                                .cluster = config.node.cluster,
                                .rules_digest = config::namespace_rules(config).digest(),
                                .own_url = own->to_string(),
                                .own_name = config.node.name,
                                .own_instance = [&config] { return own_instance(config); },
                                .min_cycle_age = config.scan.min_cycle_age,
                                .forget_after = config.peers.forget_after,
                                .own_only = own_only,
                                .has_scanned = stored.started_at.has_value(),
                                .since_last_scan = time_between(stored.started_at, started_at),
                                .start_level = stored.start_level,
                                .read_only = dry_run});
  const std::string note = fmt::format("{}", fmt::join(gathered.warnings, "; "));
  const bool is_enough = config.scan.require == config::Require::all
                             ? gathered.complete()
                             : full || gathered.any_answered() || !gathered.gaps.empty();
  if (!is_enough) return too_few_responses(config, gathered, note);
  return GatheredMarks{std::move(gathered), note, started_at};
}

}  // namespace spoor::cli
