#include "cli/scan_members.h"

#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "peer/dns_resolver.h"

namespace spoor::cli {
namespace {

// Each text read by `parse`, or what the first bad one is.
template <class T>
base::Result<std::vector<T>> parse_all(const std::vector<std::string>& texts,
                                       base::Result<T> (*parse)(std::string_view)) {
  std::vector<T> parsed;
  for (const std::string& text : texts) {
    auto one = parse(text);
    if (!one) return one.error();
    parsed.push_back(*std::move(one));
  }
  return parsed;
}

base::Result<peer::MemberSources> sources_of(const GlobalOptions& global, const config::Config& config) {
  peer::MemberSources sources;
  auto own = global.url ? peer::parse_endpoint(*global.url) : own_endpoint(config);
  if (!own) return own.error();
  sources.own = *std::move(own);
  auto endpoints = parse_all(config.peers.static_urls, peer::parse_endpoint);
  if (!endpoints) return endpoints.error();
  sources.static_endpoints = *std::move(endpoints);
  auto names = parse_all(config.peers.dns, peer::parse_dns_source);
  if (!names) return names.error();
  sources.dns = *std::move(names);
  sources.forget_after = config.peers.forget_after;
  return sources;
}

peer::RollStore store_of(base::FileSystem& files, const config::Config& config, const base::Clock& clock,
                         const tracker::Cursors& stored, bool dry_run) {
  return {.files = files,
          .data_dir = config.node.data_dir,
          .clock = clock,
          .cursors = stored,
          .read_only = dry_run};
}

}  // namespace

base::Result<peer::Members> find_scan_members(const GlobalOptions& global, const config::Config& config,
                                              const base::Clock& clock, const tracker::Cursors& stored,
                                              std::optional<peer::MemberRegistry> registry, bool dry_run) {
  auto sources = sources_of(global, config);
  if (!sources) return sources.error();
  sources->registry = std::move(registry);
  auto servers = parse_all(config.peers.dns_servers, peer::parse_dns_server);
  if (!servers) return servers.error();
  peer::DnsResolver resolver({.servers = *std::move(servers), .timeout = config.peers.timeout});
  base::PosixFileSystem files;
  return peer::find_members(*sources, resolver, store_of(files, config, clock, stored, dry_run));
}

base::Result<> settle_scan_members(const config::Config& config, const base::Clock& clock,
                                   const tracker::Cursors& stored, const peer::Members& members,
                                   const peer::AddressStates& asked) {
  base::PosixFileSystem files;
  return peer::settle_members(members, asked, store_of(files, config, clock, stored, false));
}

}  // namespace spoor::cli
