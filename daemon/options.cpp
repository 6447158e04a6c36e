#include "daemon/options.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "base/directory_overlap.h"
#include "base/iso_time.h"
#include "config/derived.h"
#include "config/secret_file.h"
#include "peer/http/tls_files.h"
#include "peer/membership/dns_members.h"
#include "peer/membership/dns_resolver.h"

namespace spoor::daemon {
namespace {

constexpr std::chrono::milliseconds dns_timeout{2'000};  // short: a stop waits for it

// Identifies the boot of the machine; empty: not available.
std::string read_boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

tracker::Durability durability_of(const config::Config& config) {
  switch (config.tracker.durability) {
    case config::Durability::os:
      return tracker::Durability::os;
    case config::Durability::memory:
      return tracker::Durability::memory;
    case config::Durability::disk:
      break;
  }
  return tracker::Durability::disk;
}

// Why the drive overlaps with another one now; empty: it does not.
std::string find_overlap(const std::vector<std::filesystem::path>& drives,
                         const std::filesystem::path& drive) {
  for (const base::DirectoryOverlap& overlap : base::find_overlaps(drives)) {
    if (drives[overlap.directory] == drive) return base::overlap_text(overlap, drives);
  }
  return {};
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
  options.durability = durability_of(config);
  options.boot_id = read_boot_id();
  options.rules = std::move(rules);
  options.tracker = {.levels = tracker::LevelSchedule(config.tracker.items, config.tracker.fp_rate),
                     .history_max = config.tracker.history,
                     .memory_bytes_max = config.tracker.memory_limit_bytes};
  return options;
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

base::Result<EtcdMembership::Secrets> etcd_secrets(const config::Etcd& etcd, const peer::Credentials& peers) {
  auto secrets = config::etcd_secrets(etcd);
  if (!secrets) return base::wrap("peers.etcd", secrets.error());
  auto credentials = peer::make_credentials({}, secrets->tls);
  if (!credentials) return base::wrap("peers.etcd.tls", credentials.error());
  return EtcdMembership::Secrets{peers, *std::move(credentials), std::move(secrets->secret)};
}

EtcdMembership::Options etcd_options(const config::Config& config, const std::string& instance,
                                     EtcdMembership::Secrets secrets) {
  const config::Etcd& etcd = *config.peers.etcd;
  return {.endpoints = etcd.endpoints,
          .location = {etcd.prefix, config.node.cluster},
          .self = {config.node.name, config::advertised_url(config).value(), instance},
          .ttl = std::chrono::floor<std::chrono::seconds>(etcd.ttl),
          .forget_after = etcd.forget_after,
          .data_dir = config.node.data_dir,
          .boot_id = read_boot_id(),
          .user = etcd.user,
          .secrets = std::move(secrets)};
}

std::shared_ptr<peer::MemberSource> dns_members(const config::Config::Peers& peers) {
  if (peers.dns.empty()) return nullptr;
  auto resolver = std::make_shared<peer::DnsResolver>(
      peer::DnsResolver::Options{.servers = peers.dns_servers, .timeout = dns_timeout});
  return std::make_shared<peer::DnsMembers>(
      std::move(resolver), peer::DnsMembers::Options{.names = peers.dns, .is_tls = peers.dns_tls});
}

}  // namespace spoor::daemon
