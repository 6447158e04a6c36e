#include "cli/scan_gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <utility>

#include "base/file_system.h"
#include "base/printable.h"
#include "cli/etcd_connection.h"
#include "config/derived.h"
#include "peer/http/http_transport.h"
#include "peer/membership/cycle_lease.h"
#include "peer/membership/dns_members.h"
#include "peer/membership/etcd_members.h"
#include "peer/membership/membership.h"
#include "scanner/walk/pace.h"
#include "tracker/storage/instance_record.h"

namespace spoor::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr unsigned attempts_max = 3;  // per peer: it may be restarting
constexpr int round_timeouts = 6;     // the time limit of all peers together, in limits of one peer
constexpr seconds lease_ttl_min{5};
constexpr seconds lease_ttl_max{60};  // a killed scan blocks the others for this long

peer::CycleLease::Options lease_options(const config::Config& config, const peer::EtcdLocation& location,
                                        const base::Clock& clock) {
  return {
      .location = location,
      .node = config.node.name,
      .ttl = std::clamp(std::chrono::ceil<seconds>(config.scan.min_cycle_age), lease_ttl_min, lease_ttl_max),
      .wait_max = config.peers.timeout,
      .seed = std::random_device()(),
      .wait = [&clock](milliseconds pause) {
        scanner::SystemWaiter().wait(clock.steady_now() + pause, std::stop_token());
        return true;
      }};
}

// etcd during one scan: its members, and the cycle lease.
struct ScanEtcd {
  std::unique_ptr<EtcdConnection> connection;
  peer::EtcdMembers members;
  peer::CycleLease lease;

  ScanEtcd(std::unique_ptr<EtcdConnection> opened, const config::Config& config, const base::Clock& clock)
      : connection(std::move(opened)),
        members(connection->client, {.location = connection->location,
                                     .self = {config.node.name, config::advertised_url(config).value(), {}},
                                     .forget_after = config.peers.etcd->forget_after}),
        lease(connection->client, clock, lease_options(config, connection->location, clock)) {}
};

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
  std::optional<ScanEtcd> etcd;
  if (config.peers.etcd) {
    auto connection = EtcdConnection::open(config, clock);
    if (!connection) return connection.error();
    etcd.emplace(*std::move(connection), config, clock);
  }
  peer::DnsMembers dns(
      std::make_shared<peer::DnsResolver>(
          peer::DnsResolver::Options{.servers = config.peers.dns_servers, .timeout = config.peers.timeout}),
      {.names = config.peers.dns, .is_tls = config.peers.dns_tls, .forget_after = config.peers.forget_after});
  base::PosixFileSystem files;
  peer::Membership membership({.own = *own,
                               .static_endpoints = config.peers.static_endpoints,
                               .sources = {&dns, etcd ? &etcd->members : nullptr}},
                              peer::Membership::Store{files, config.node.data_dir, clock, dry_run});
  const auto members = membership.read({stored.cursors, stored.membership_checkpoint});
  const auto transport_of = transport_options(global, config, members);
  if (!transport_of) return transport_of.error();
  peer::HttpTransport transport(*transport_of);

  // An etcd that has not responded is not requested again: the lease saves work, and nothing depends on it.
  const bool uses_lease = etcd && etcd->members.has_responded() && !dry_run;
  const bool may_open_cycle = !uses_lease || etcd->lease.acquire();
  auto gathered = peer::gather(transport, stored.cursors,
                               {.members = members,
                                .cluster = config.node.cluster,
                                .rules_digest = config::namespace_rules(config).digest(),
                                .own_url = own->to_string(),
                                .own_name = config.node.name,
                                .own_instance = [&config] { return own_instance(config); },
                                .min_cycle_age = config.scan.min_cycle_age,
                                .may_open_cycle = may_open_cycle,
                                .trust_new_peers = config.scan.new_peers == config::NewPeers::trust,
                                .start_level = stored.start_level,
                                .read_only = dry_run});
  if (uses_lease) etcd->lease.release();
  std::string note = fmt::format("{}", fmt::join(gathered.warnings, "; "));
  if (const auto done = membership.store_responses(gathered.addresses, stored.cursors); !done) {
    note += (note.empty() ? "" : "; ") + done.error().message;
  }
  const bool is_enough = config.scan.require == config::Require::all
                             ? gathered.complete()
                             : full || gathered.any_answered() || !gathered.gaps.empty();
  if (!is_enough) return too_few_responses(config, gathered, note);
  return GatheredMarks{std::move(gathered), members.checkpoint, std::move(note), started_at};
}

}  // namespace spoor::cli
