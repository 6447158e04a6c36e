#include "daemon/node.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <tuple>
#include <utility>

#include "config/derived.h"
#include "daemon/options.h"
#include "daemon/status/status_json.h"
#include "scanner/store/usage_database.h"
#include "tracker/paths/drive_paths.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

// One each for snapshots, group commits, polls of peers, refreshes of etcd, a retirement, and reading the
// configuration.
constexpr std::size_t pool_threads = 6;

// A caller waits for the slowest member.
constexpr std::chrono::milliseconds members_timeout_max{5'000};

std::uint64_t draw_run() {
  std::random_device device;
  return std::uint64_t{device()} << 32U | device();
}

// For reports.
base::Endpoint self_endpoint(const config::Config& config) {
  if (auto endpoint = config::own_endpoint(config)) return *std::move(endpoint);
  base::Endpoint without_a_fixed_port;
  without_a_fixed_port.host = "localhost";
  return without_a_fixed_port;
}

// By what a user other than root can write.
std::optional<base::DiskSpace> fullest_drive(const std::optional<tracker::SavedSnapshot>& last) {
  std::optional<base::DiskSpace> fullest;
  double share_max = 0;
  if (!last) return fullest;
  for (const tracker::DriveState& drive : last->drives) {
    if (!drive.space) continue;
    const auto used = static_cast<double>(drive.space->used_bytes);
    const double share = used / std::max(used + static_cast<double>(drive.space->free_bytes), 1.0);
    if (!fullest || share > share_max) {
      fullest = drive.space;
      share_max = share;
    }
  }
  return fullest;
}

}  // namespace

ClusterMembers cluster_members(const PeerWatch& peers, const EtcdMembership* etcd) {
  ClusterMembers members;
  members.endpoints = peers.endpoints();
  members.credentials = peers.credentials();
  for (const PeerState& peer : peers.states()) {
    members.names.push_back(peer.name);
    if (peer.is_self) members.own_urls.insert(peer.url);
  }
  for (const DnsState& dns : peers.dns_states()) {
    if (!dns.error.empty())
      members.unknown_sources.push_back(fmt::format("dns {}: {}", dns.source, dns.error));
  }
  if (!peers.is_dns_read()) members.unknown_sources.emplace_back("dns: no lookup has completed yet");
  if (etcd != nullptr && !etcd->status().ok)
    members.unknown_sources.push_back("etcd: " + etcd->status().error);
  return members;
}

Node::Node(asio::io_context& context, HttpServer& server, const config::Config& config,
           const std::string& version, tracker::Persistence& persistence, NodeSecrets secrets,
           const base::Clock& clock)
    : server_(server),
      configured_peers_(config.peers),
      persistence_(persistence),
      identity_{config.node.cluster, config.node.name},
      run_(draw_run()),
      rules_(config::namespace_rules(config)),
      timers_(context),
      pool_(pool_threads),
      snapshot_scheduler_(context, pool_, persistence, clock, timers_, config.tracker.save_interval),
      group_commit_(context, pool_, persistence, snapshot_scheduler_, clock, timers_),
      introduction_(context, pool_, persistence, identity_.node, config::known_for(config.peers), clock,
                    timers_),
      peers_(context, pool_,
             {.cluster = identity_.cluster,
              .run = run_,
              .has_etcd = config.peers.etcd.has_value(),
              .static_endpoints = config.peers.static_endpoints,
              .credentials = secrets.peers,
              .dns = dns_members(config.peers)},
             introduction_, clock, timers_),
      etcd_(secrets.etcd
                ? std::make_unique<EtcdMembership>(
                      context, pool_, clock, timers_,
                      etcd_options(config, persistence.tracker().state().instance.to_string(), *secrets.etcd),
                      [this](const auto& confirmed, const std::string& error) {
                        if (confirmed) introduction_.know(*confirmed);
                        introduction_.set_source_error(error);
                      },
                      [this](std::vector<base::Endpoint> members) { peers_.set_members(std::move(members)); })
                : nullptr),
      scan_waits_(scanner::UsageDatabase::file_in(config.node.data_dir), reporting_, clock, timers_),
      reports_(scanner::UsageDatabase::file_in(config.node.data_dir), reporting_, clock, scan_waits_,
               {.cluster = {.own = {identity_.node, identity_.cluster,
                                    persistence.tracker().state().instance.to_string(), version},
                            .timeout = std::min(config.peers.timeout, members_timeout_max)},
                .members = [this] { return cluster_members(peers_, etcd_.get()); },
                .copies = tracker::CopyRules(config.usage.copies),
                .fullest_drive = [this] { return fullest_drive(snapshot_scheduler_.last()); }}),
      retirement_(
          pool_,
          {.node = identity_,
           .run = run_,
           .rules_digest = rules_.digest(),
           .own_unread = [this, file = scanner::UsageDatabase::file_in(
                                    config.node.data_dir)] { return unread_from(file, introduction_.id()); }},
          persistence, introduction_, peers_, etcd_.get()),
      scans_(context, reporting_, scanner::UsageDatabase::file_in(config.node.data_dir)),
      watched_(timers_, clock, config.drives, config::watched_drives(config),
               [this](const auto& drive, const auto& cookie, auto done) {
                 snapshot_scheduler_.touch(drive, cookie, std::move(done));
               }),
      metrics_(server, scans_, clock),
      intake_(context, large_bodies_, persistence, rules_, tracker::DrivePaths(config.drives), group_commit_,
              introduction_, clock),
      routes_({{.node = identity_,
                .version = version,
                .persistence = persistence,
                .snapshot_scheduler = snapshot_scheduler_,
                .group_commit = group_commit_,
                .peers = peers_,
                .etcd = etcd_.get(),
                .scans = scans_,
                .watched = watched_},
               run_,
               rules_.digest(),
               introduction_,
               retirement_,
               intake_,
               metrics_,
               merging_},
              clock),
      gather_(
          context,
          {.node = identity_,
           .instance = persistence.tracker().state().instance,
           .self = self_endpoint(config),
           .dns = dns_members(config.peers, config.peers.timeout),
           .members_digest = config::members_digest(config.peers)},
          [this](const HttpRequest& request) { return routes_.cycle(request); }, peers_, etcd_.get(), clock),
      api_(context, identity_.node, {intake_, routes_, reports_, scan_waits_, gather_},
           std::move(secrets.access), clock) {}

asio::awaitable<void> Node::start() {
  // Replaces snapshots that could not be loaded, and detects unwritable drives.
  co_await snapshot_scheduler_.save();
  if (etcd_) co_await etcd_->register_here();
  const bool has_peers = etcd_ || !peers_.static_endpoints().empty() || !peers_.is_dns_read();
  if (!has_peers) introduction_.open_alone();
  HttpService service;
  service.handle = [this](const HttpRequest& request) {
    return metrics_.measure(request, route_of(request.path), api_.handle(request));
  };
  service.admit = [this](const HttpRequest& request) {
    auto refused = api_.admit(request);
    if (refused) {
      metrics_.refused(route_of(request.path), refused->status, refused->problem);
      api_.note_refused(request);
    }
    return refused;
  };
  service.refused = [this](const HttpRequest& request, const Problem& problem) {
    metrics_.refused(route_of(request.path), problem.status, problem.code);
    api_.note_refused(request);
  };
  service.body_bytes_max = [](const HttpRequest& request) { return body_bytes_max_of(request.path); };
  server_.start(service);
  peers_.start();
  if (etcd_) etcd_->start();
  snapshot_scheduler_.start();
}

void Node::stop() {
  server_.stop();
  peers_.stop();
  introduction_.stop();
  retirement_.stop();
  scan_waits_.stop();
  gather_.stop();
  watched_.stop();
  if (etcd_) etcd_->stop();
  snapshot_scheduler_.stop();
}

// The last-known members of the DNS names stay, unless the names have changed.
void Node::set_peers(const config::Config::Peers& fresh) {
  const auto dns = [](const config::Config::Peers& of) {
    return std::tie(of.dns, of.dns_servers, of.dns_tls);
  };
  peers_.set_peers(fresh.static_endpoints);
  if (dns(fresh) != dns(configured_peers_)) peers_.set_dns(dns_members(fresh));
  auto etcd = std::move(configured_peers_.etcd);  // needs a restart
  configured_peers_ = fresh;
  configured_peers_.etcd = std::move(etcd);
  gather_.set_members(dns_members(fresh, fresh.timeout), config::members_digest(configured_peers_));
  introduction_.set_known_for(config::known_for(configured_peers_));
}

std::string Node::status_line(bool is_reload_failed) const {
  auto health_errors = routes_.health_errors();
  if (is_reload_failed)
    health_errors.emplace_back("the changed configuration has errors, and is not in effect (see the log)");
  tracker::CycleRequest number_only;
  number_only.marks_wanted = false;
  return daemon::status_line(persistence_.tracker().cycle(number_only).current, peers_.others(),
                             persistence_.durability(), health_errors);
}

}  // namespace spoor::daemon
