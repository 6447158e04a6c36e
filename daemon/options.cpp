#include "daemon/options.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/directory_overlap.h"
#include "config/derived.h"
#include "config/secret_file.h"
#include "peer/membership/dns_members.h"

namespace spoor::daemon {
namespace {

constexpr rlim_t kept_for_the_rest = 64;
constexpr rlim_t kept_for_a_thread = 3;  // opened by an io_context, beside one for each listener

// Identifies the boot of the machine; empty: not available.
std::string read_boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

// Why the drive overlaps with another one now; empty: it does not.
std::string find_overlap(const std::vector<std::filesystem::path>& drives,
                         const std::filesystem::path& drive) {
  for (const base::DirectoryOverlap& overlap : base::find_overlaps(drives)) {
    if (drives[overlap.directory] == drive) return base::overlap_text(overlap, drives);
  }
  return {};
}

// How many connections may be open at a time: `wanted`, or fewer if the limit on open files (RLIMIT_NOFILE)
// is too low for them beside the journal, the snapshots, the peers and `kept_for_threads` of serving threads;
// this is logged as a warning. First raises the soft limit to the hard limit.
std::size_t connections_that_fit(std::size_t wanted, std::size_t kept_for_threads) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return wanted;
  if (files.rlim_cur < files.rlim_max) {
    const rlimit raised{files.rlim_max, files.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) files = raised;
  }
  if (files.rlim_cur == RLIM_INFINITY) return wanted;
  const rlim_t kept = kept_for_the_rest + kept_for_threads;
  const rlim_t left = files.rlim_cur - std::min(files.rlim_cur, kept);
  // A quarter more may be open for a moment while they are being refused.
  const std::size_t fit = std::max<std::size_t>(left - left / 5, 1);
  if (wanted <= fit) return wanted;
  spdlog::warn(
      "limits.max_connections is {}, but with {} open files allowed there is room for {}: that many are "
      "served. Raise LimitNOFILE= in the unit, or lower the setting",
      wanted, files.rlim_cur, fit);
  return fit;
}

}  // namespace

tracker::Persistence::Options persistence_options(const config::Config& config, std::string rules) {
  tracker::Persistence::Options options;
  options.data_dir = config.node.data_dir;
  options.drives = config.drives;
  options.find_overlap = [drives = config.drives](const std::filesystem::path& drive) {
    return find_overlap(drives, drive);
  };
  options.owner = {config.node.cluster, config.node.name};
  options.durability = config.tracker.durability;
  options.boot_id = read_boot_id();
  options.rules = std::move(rules);
  options.tracker = {.levels = tracker::LevelSchedule(config.tracker.items, config.tracker.fp_rate),
                     .history_max = config.tracker.history,
                     .memory_bytes_max = config.tracker.memory_limit_bytes};
  return options;
}

HttpLimits http_limits(const config::Config& config, std::size_t other_threads) {
  const config::Config::Limits& limits = config.limits;
  const std::size_t kept_for_threads = other_threads * (kept_for_a_thread + config.listen.size());
  return {.body_bytes_max = limits.max_body_bytes,
          .bodies_bytes_max = std::max(limits.max_bodies_bytes, limits.max_body_bytes),
          .connections_max = connections_that_fit(limits.max_connections, kept_for_threads)};
}

base::Result<std::shared_ptr<const Access>> load_access(const config::Config::Auth& auth) {
  auto loaded = Access::load(auth);
  if (!loaded) return loaded.error();
  return std::make_shared<const Access>(*std::move(loaded));
}

base::Result<peer::Credentials> peer_credentials(const config::Config::Peers& peers) {
  const auto secrets = config::peer_secrets(peers);
  if (!secrets) return secrets.error();
  auto credentials = peer::make_credentials(secrets->secret, secrets->tls);
  if (credentials && !peers.token_to_all) {
    auto& urls = credentials->trusted_urls.emplace();
    for (const auto& endpoint : peers.static_endpoints) urls.insert(endpoint.to_string());
  }
  return credentials;
}

std::optional<std::string> certificate_expiry(const std::optional<config::PeerTls>& files,
                                              const peer::Credentials& credentials, base::WallTime now) {
  const auto end = credentials.tls ? peer::certificate_valid_until(*credentials.tls) : std::nullopt;
  if (!end || now <= *end) return std::nullopt;
  return fmt::format("the certificate {} has expired, at {}", files->certificate.native(),
                     base::iso_time(*end));
}

base::Result<EtcdMembership::Secrets> etcd_secrets(const config::Etcd& etcd) {
  auto secrets = config::etcd_secrets(etcd);
  if (!secrets) return base::wrap("peers.etcd", secrets.error());
  auto credentials = peer::make_credentials({}, secrets->tls);
  if (!credentials) return base::wrap("peers.etcd.tls", credentials.error());
  return EtcdMembership::Secrets{*std::move(credentials), std::move(secrets->secret)};
}

EtcdMembership::Options etcd_options(const config::Config& config, const std::string& instance,
                                     EtcdMembership::Secrets secrets) {
  const config::Etcd& etcd = *config.peers.etcd;
  return {.endpoints = etcd.endpoints,
          .location = {etcd.prefix, config.node.cluster},
          .self = {config.node.name, config::advertised_url(config).value(), instance},
          .ttl = std::chrono::floor<std::chrono::seconds>(etcd.ttl),
          .forget_after = std::chrono::floor<std::chrono::seconds>(etcd.forget_after),
          .user = etcd.user,
          .secrets = std::move(secrets)};
}

std::shared_ptr<peer::MemberSource> dns_members(const config::Config::Peers& peers,
                                                std::chrono::milliseconds timeout) {
  if (peers.dns.empty()) return nullptr;
  return std::make_shared<peer::DnsMembers>(peer::DnsMembers::Options{
      .names = peers.dns, .is_tls = peers.dns_tls, .servers = peers.dns_servers, .timeout = timeout});
}

}  // namespace spoor::daemon
