#include "daemon/daemon.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/directory_overlap.h"
#include "base/file_lock.h"
#include "base/file_system.h"
#include "base/iso_time.h"
#include "config/advertised_url.h"
#include "config/secret_file.h"
#include "config/validate.h"
#include "daemon/access.h"
#include "daemon/api.h"
#include "daemon/committer.h"
#include "daemon/etcd_membership.h"
#include "daemon/http_server.h"
#include "daemon/logging.h"
#include "daemon/metrics.h"
#include "daemon/open_files.h"
#include "daemon/passed_sockets.h"
#include "daemon/peer_watch.h"
#include "daemon/reload.h"
#include "daemon/reports.h"
#include "daemon/saver.h"
#include "daemon/scan_watch.h"
#include "daemon/service_manager.h"
#include "daemon/serving_threads.h"
#include "daemon/status_line.h"
#include "daemon/task.h"
#include "daemon/tls.h"
#include "peer/endpoint.h"
#include "peer/tls_files.h"
#include "scanner/usage_database.h"
#include "tracker/persistence.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

// One saves, one commits, one asks the peers, one asks etcd, one reads the configuration anew.
constexpr std::size_t pool_threads = 5;

base::Result<base::FileLock> lock_data_dir(const std::filesystem::path& data_dir) {
  std::error_code error;
  base::PosixFileSystem files;
  const auto folder = data_dir.has_filename() ? data_dir : data_dir.parent_path();
  std::filesystem::create_directories(folder.parent_path(), error);  // what fails here fails below
  if (const auto created = files.create_directory(folder); !created) {
    return base::wrap("node.data_dir", created.error());
  }
  auto lock = base::FileLock::try_acquire(data_dir / "spoord.lock");
  if (!lock) return lock.error();
  std::optional<base::FileLock> held = *std::move(lock);
  if (!held) {
    return base::Error(std::make_error_code(std::errc::device_or_resource_busy),
                       fmt::format("another spoord runs on node.data_dir {}", data_dir.native()));
  }
  return std::move(*held);
}

// Which start of the machine this is; empty where the system does not tell.
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

// Why the drive overlaps with another one now; empty where it does not.
std::string find_overlap(const std::vector<std::filesystem::path>& drives,
                         const std::filesystem::path& drive) {
  for (const base::DirectoryOverlap& overlap : base::find_overlaps(drives)) {
    if (drives[overlap.directory] == drive) return base::overlap_text(overlap, drives);
  }
  return {};
}

// What the last run left, and on disk the note that a run is under way, so that a crash from here on is
// seen for one.
base::Result<std::unique_ptr<tracker::Persistence>> load(base::FileSystem& files, const base::Clock& clock,
                                                         const config::Config& config,
                                                         const std::string& rules) {
  tracker::Persistence::Options options;
  options.data_dir = config.node.data_dir;
  options.drives = config.drives;
  for (const std::string& overlap : config::find_drive_overlaps(config)) spdlog::error("{}", overlap);
  options.find_overlap = [drives = config.drives](const std::filesystem::path& drive) {
    return find_overlap(drives, drive);
  };
  options.owner = {config.node.cluster, config.node.name};
  options.durability = durability_of(config);
  options.boot_id = read_boot_id();
  options.rules = rules;
  options.tracker = {.levels = tracker::LevelSchedule(config.tracker.items, config.tracker.fp_rate),
                     .history_max = config.tracker.history,
                     .memory_bytes_max = config.tracker.memory_limit_bytes};
  auto persistence = tracker::Persistence::start(files, clock, std::move(options));
  if (!persistence) return persistence;
  const tracker::StartReport& report = (*persistence)->report();
  for (const std::string& note : report.notes) spdlog::error("{}", note);
  if (!report.loss.empty()) {
    spdlog::warn("marks may have been lost ({}): every scanner will walk everything once", report.loss);
  }
  const tracker::TrackerState state = (*persistence)->tracker().state();
  spdlog::info("instance {}, cycle {}, {} cycles of history", state.instance.to_string(), state.current.value,
               state.history.size());
  return persistence;
}

using TlsServers = std::vector<std::shared_ptr<TlsServer>>;

base::Result<std::shared_ptr<TlsServer>> load_tls(const config::Tls& files) {
  const auto certificate = config::secret_file(files.certificate);
  if (!certificate) return certificate.error();
  const auto key = config::secret_file(files.key);
  if (!key) return key.error();
  const auto client_ca = config::secret_file(files.client_ca);
  if (!client_ca) return client_ca.error();
  return TlsServer::load({*certificate, *key, *client_ca});
}

using PassedSockets = std::vector<PassedSocket>;

const PassedSocket* socket_for(const PassedSockets& passed, const config::Listener& listener) {
  const auto socket = std::find_if(passed.begin(), passed.end(),
                                   [&](const PassedSocket& each) { return is_for(each, listener); });
  return socket == passed.end() ? nullptr : &*socket;
}

base::Result<std::string> listen_tcp(HttpServer& server, const config::Listener& listener,
                                     const PassedSocket* socket, base::WallTime now,
                                     TlsServers& tls_servers) {
  const bool asks_for_certificates = listener.tls && !listener.tls->client_ca.empty();
  const bool is_local = asio::ip::make_address(listener.address).is_loopback();
  HttpServer::TcpListener tcp{.address = listener.address,
                              .port = listener.port,
                              .caller = {.is_trusted = listener.insecure,
                                         .is_trusted_without_tokens = is_local && !asks_for_certificates,
                                         .is_tls = listener.tls.has_value()}};
  if (listener.tls) {
    auto tls = load_tls(*listener.tls);
    if (!tls) return tls.error();
    tcp.tls = *std::move(tls);
    if (const auto expiry = tcp.tls->expiry(now)) spdlog::error("{}: peers refuse it", *expiry);
    tls_servers.push_back(tcp.tls);
  }
  auto url = socket == nullptr ? server.listen(tcp) : server.adopt(socket->descriptor, tcp);
  if (!url) return url;
  if (listener.insecure) spdlog::warn("{} asks nobody who he is (\"insecure\": true)", *url);
  if (!listener.insecure && !listener.tls && !is_local) {
    spdlog::warn("{} takes tokens that whoever listens on the network can read: give it 'tls'", *url);
  }
  return url;
}

base::Result<gid_t> socket_group(const config::Listener& listener) {
  auto group = group_id(listener.group);
  if (!group) return base::wrap("the listener " + listener.unix_path.native(), group.error());
  return group;
}

base::Result<std::string> listen_unix(HttpServer& server, const config::Listener& listener,
                                      const PassedSocket* socket_passed) {
  if (socket_passed != nullptr) return server.adopt_unix(socket_passed->descriptor);
  HttpServer::UnixListener socket{.path = listener.unix_path};
  if (!listener.mode.empty()) socket.mode = static_cast<mode_t>(std::stoul(listener.mode, nullptr, 8));
  if (!listener.group.empty()) {
    const auto group = socket_group(listener);
    if (!group) return group.error();
    socket.group = *group;
  }
  return server.listen(socket);
}

base::Result<std::string> open(HttpServer& server, const config::Listener& listener,
                               const PassedSockets& passed, base::WallTime now, TlsServers& tls_servers) {
  const PassedSocket* const socket = socket_for(passed, listener);
  auto url = listener.unix_path.empty() ? listen_tcp(server, listener, socket, now, tls_servers)
                                        : listen_unix(server, listener, socket);
  if (url && socket != nullptr) {
    spdlog::info("{} was opened by the service manager ('{}')", *url, socket->name);
  }
  return url;
}

// Binds every listener whose socket was not passed; gives the lines to log when they serve.
base::Result<std::vector<std::string>> listen(HttpServer& server, const config::Config& config,
                                              const PassedSockets& passed, base::WallTime now,
                                              TlsServers& tls_servers) {
  std::vector<std::string> urls;
  for (const config::Listener& listener : config.listen) {
    const auto url = open(server, listener, passed, now, tls_servers);
    if (url) {
      urls.push_back(*url);
    } else if (config.listen_is_default && !listener.unix_path.empty()) {
      spdlog::warn("{}; going on without it", url.error().message);
    } else {
      return url.error();
    }
  }
  if (!urls.empty()) return urls;
  return base::Error(std::make_error_code(std::errc::invalid_argument), "nothing to listen on: set listen");
}

std::uint64_t draw_run() {
  std::random_device device;
  return std::uint64_t{device()} << 32U | device();
}

tracker::NamespaceRules rules_of(const config::Config& config) {
  return tracker::NamespaceRules(
      {config.name_space.exclude, config.name_space.bucket_names == config::BucketNames::s3});
}

std::vector<peer::Endpoint> parse_all(const std::vector<std::string>& urls) {
  std::vector<peer::Endpoint> endpoints;
  endpoints.reserve(urls.size());
  for (const std::string& url : urls) endpoints.push_back(peer::parse_endpoint(url).value());
  return endpoints;
}

base::Result<peer::Credentials> credentials_for(const config::Config::Peers& peers) {
  const auto secrets = config::peer_secrets(peers);
  if (!secrets) return secrets.error();
  std::optional<peer::TlsFiles> tls;
  if (secrets->tls) tls = {secrets->tls->ca, secrets->tls->certificate, secrets->tls->key};
  auto credentials = peer::make_credentials(secrets->token, tls);
  if (credentials && !peers.token_to_all) {
    auto& urls = credentials->trusted_urls.emplace();
    for (const auto& endpoint : parse_all(peers.static_urls)) urls.insert(endpoint.to_string());
  }
  return credentials;
}

// Where the certificate that peers are shown is not valid any more: which one, and since when.
std::optional<std::string> expiry_of(const config::Config::Peers& peers, const peer::Credentials& credentials,
                                     base::WallTime now) {
  const auto end = credentials.tls ? peer::certificate_valid_until(*credentials.tls) : std::nullopt;
  if (!end || now <= *end) return std::nullopt;
  return fmt::format("the certificate {} has expired, at {}", peers.tls->certificate.native(),
                     base::iso_time(*end));
}

EtcdMembership::Options etcd_options(const config::Config& config, const std::string& instance,
                                     const peer::Credentials& credentials) {
  const config::Etcd& etcd = *config.peers.etcd;
  return {.endpoints = parse_all(etcd.endpoints),
          .place = {etcd.prefix, config.node.cluster},
          .self = {config.node.name, config::advertised_url(config).value(), instance},
          .ttl = std::chrono::floor<std::chrono::seconds>(etcd.ttl),
          .forget_after = etcd.forget_after,
          .data_dir = config.node.data_dir,
          .boot_id = read_boot_id(),
          .credentials = credentials};
}

base::Result<std::vector<std::string>> listen_or_serve_passed(HttpServer& server,
                                                              const config::Config& config,
                                                              base::WallTime now, TlsServers& tls_servers) {
  const auto passed = take_passed_sockets();
  if (!passed) return passed.error();
  const auto all = with_listeners_for(*passed, config);
  if (!all) return all.error();
  return listen(server, *all, *passed, now, tls_servers);
}

base::Result<std::shared_ptr<const Access>> load_access(const config::Config::Auth& auth) {
  auto loaded = Access::load(auth);
  if (!loaded) return loaded.error();
  return std::make_shared<const Access>(*std::move(loaded));
}

bool reload_access(Api& api, const config::Config& fresh) {
  auto loaded = load_access(fresh.auth);
  if (!loaded) {
    spdlog::error("auth stays as it was: {}", loaded.error().message);
    return false;
  }
  api.set_access(*std::move(loaded));
  return true;
}

bool reload_certificates(const TlsServers& tls_servers, base::WallTime now) {
  bool all_good = true;
  for (const auto& tls : tls_servers) {
    if (const auto reloaded = tls->reload(now); !reloaded) {
      all_good = false;
      spdlog::error("a certificate stays as it was: {}", reloaded.error().message);
    }
  }
  return all_good;
}

// An expired certificate does not replace one that is valid.
bool reload_credentials(PeerWatch& peers, const config::Config& fresh, base::WallTime now) {
  const auto credentials = credentials_for(fresh.peers);
  const auto in_use = peers.tls_expiry().certificate;
  const bool is_valid_in_use = in_use && now <= *in_use;
  const auto expiry = credentials ? expiry_of(fresh.peers, *credentials, now) : std::nullopt;
  if (credentials && !(expiry && is_valid_in_use)) {
    peers.set_credentials(*credentials);
    return true;
  }
  spdlog::error("what peers are shown stays as it was: {}",
                credentials ? *expiry : credentials.error().message);
  return false;
}

// A body of the size that is allowed must fit.
std::uint64_t bodies_bytes_max(const config::Config::Limits& limits) {
  return std::max(limits.max_bodies_bytes, limits.max_body_bytes);
}

// What a reload takes over. All references must outlive what it gives.
std::vector<Reloadable> reloadable(HttpServer& server, const ServingThreads& serving, PeerWatch& peers,
                                   Api& api, const TlsServers& tls_servers, const base::Clock& clock) {
  using config::Config;
  const auto set_limits = [&](const Config& fresh) {
    server.set_limits(fresh.limits.max_body_bytes, bodies_bytes_max(fresh.limits),
                      connections_that_fit(fresh.limits.max_connections, serving.others().size()));
    return true;
  };
  const auto set_log = [](const Config& fresh) {
    set_log_level(fresh.log.level);
    return true;
  };
  const auto set_peers = [&](const Config& fresh) {
    peers.set_peers(parse_all(fresh.peers.static_urls));
    return true;
  };
  return {
      {{"log.level"}, set_log},
      {{"limits.max_body", "limits.max_bodies", "limits.max_connections"}, set_limits},
      {{"peers.static"}, set_peers},
      {{"peers.token_file", "peers.token_to_all", "peers.tls"},
       [&](const Config& fresh) { return reload_credentials(peers, fresh, clock.wall_now()); }},
      {{"auth.tokens", "auth.unix", "auth.certificates"},
       [&](const Config& fresh) { return reload_access(api, fresh); }},
      {{}, [&](const Config&) { return reload_certificates(tls_servers, clock.wall_now()); }},
  };
}

std::string status_of(tracker::Persistence& persistence, const Api& api, const PeerWatch& peers,
                      const Reload& reload) {
  tracker::CycleRequest number_only;
  number_only.marks_wanted = false;
  auto troubles = api.troubles();
  if (reload.failed())
    troubles.emplace_back("the changed configuration has errors, and is not in effect (see the log)");
  return status_line(persistence.tracker().cycle(number_only).current, peers.states(),
                     persistence.durability(), troubles);
}

using ReadConfig = std::function<base::Result<config::Config>()>;

asio::awaitable<base::Result<config::Config>> read_config(const ReadConfig& read) { co_return read(); }

asio::awaitable<void> watch_signals(asio::signal_set& signals, asio::thread_pool& pool,
                                    const ReadConfig& read, Reload& reload, ServiceManager& manager) {
  for (;;) {
    const auto [error, signal] = co_await signals.async_wait(asio::as_tuple(asio::use_awaitable));
    if (error) co_return;
    if (signal != SIGHUP) {
      spdlog::info("stopping on signal {}", signal);
      co_return;
    }
    manager.reloading();
    const auto fresh = co_await asio::co_spawn(pool, read_config(read), asio::use_awaitable);
    reload.apply(fresh);
    manager.reloaded();
  }
}

}  // namespace

std::vector<std::string> check(const config::Config& config) {
  std::vector<std::string> problems = config::find_drive_overlaps(config);
  const auto note = [&](const auto& result) {
    if (!result) problems.push_back(result.error().message);
  };
  const auto is_here = [](const auto&... settings) {
    return (!config::is_credential_elsewhere(settings) && ...);
  };
  for (const config::Listener& listener : config.listen) {
    if (!listener.group.empty()) note(socket_group(listener));
    if (!listener.tls || !is_here(listener.tls->certificate, listener.tls->key, listener.tls->client_ca))
      continue;
    const auto tls = load_tls(*listener.tls);
    note(tls);
    const auto expiry = tls ? (*tls)->expiry(base::SystemClock().wall_now()) : std::nullopt;
    if (expiry) problems.push_back(*expiry);
  }
  for (const config::Token& token : config.auth.tokens) {
    config::Config::Auth alone;
    alone.tokens = {token};
    if (is_here(token.file)) note(Access::load(alone));
  }
  config::Config::Auth without_tokens = config.auth;
  without_tokens.tokens.clear();
  note(Access::load(without_tokens));
  const auto tls = config.peers.tls.value_or(config::PeerTls());
  if (is_here(config.peers.token_file, tls.ca, tls.certificate, tls.key)) {
    const auto credentials = credentials_for(config.peers);
    note(credentials);
    const auto expiry =
        credentials ? expiry_of(config.peers, *credentials, base::SystemClock().wall_now()) : std::nullopt;
    if (expiry) problems.push_back(*expiry);
  }
  return problems;
}

base::Result<> run(const config::Config& config, const std::function<base::Result<config::Config>()>& reload,
                   const std::string& version) {
  const tracker::NodeIdentity node{config.node.cluster, config.node.name};
  spdlog::info("spoord {}: node '{}' of cluster '{}'", version, node.node, node.cluster);
  const auto lock = lock_data_dir(config.node.data_dir);
  if (!lock) return lock.error();

  asio::io_context context(1);
  asio::signal_set signals(context, SIGTERM, SIGINT, SIGHUP);  // from here on a stop is a clean one
  ServingThreads serving(config.limits.threads);
  ServiceManager manager(context, serving.others());
  manager.say("loading");
  HttpServer server(
      context,
      {.body_bytes_max = config.limits.max_body_bytes,
       .bodies_bytes_max = bodies_bytes_max(config.limits),
       .connections_max = connections_that_fit(config.limits.max_connections, serving.others().size())},
      serving.others());
  const auto access = load_access(config.auth);
  if (!access) return access.error();
  const auto credentials = credentials_for(config.peers);
  if (!credentials) return credentials.error();
  const base::SystemClock clock;
  if (const auto expiry = expiry_of(config.peers, *credentials, clock.wall_now())) {
    spdlog::error("{}: peers refuse it", *expiry);
  }
  // Early, so that a taken port is found before anything is changed on disk.
  TlsServers tls_servers;
  const auto urls = listen_or_serve_passed(server, config, clock.wall_now(), tls_servers);
  if (!urls) return urls.error();

  base::PosixFileSystem files;
  const tracker::NamespaceRules rules = rules_of(config);
  const auto persistence = load(files, clock, config, rules.fingerprint());
  if (!persistence) return persistence.error();

  asio::thread_pool pool(pool_threads);
  asio::thread_pool answers(1);  // one large merge at a time, for the memory it takes
  asio::thread_pool report_pool(1);
  asio::thread_pool large_bodies(1);
  SystemTimers timers(context);
  Saver saver(context, pool, **persistence, clock, timers, config.tracker.save_interval);
  saver.save_here();  // replaces what could not be loaded, and shows early what can't be written
  Committer committer(context, pool, **persistence, saver, clock, timers);
  PeerWatch peers(context, pool, node.cluster, parse_all(config.peers.static_urls), *credentials, clock,
                  timers);
  std::optional<EtcdMembership> etcd;
  if (config.peers.etcd) {
    const std::string instance = (*persistence)->tracker().state().instance.to_string();
    etcd.emplace(context, pool, files, clock, timers, etcd_options(config, instance, *credentials),
                 [&peers](std::vector<peer::Endpoint> members) { peers.set_members(std::move(members)); });
    etcd->register_here();  // before this node says that it is ready
  }
  Reports reports(scanner::UsageDatabase::file_in(config.node.data_dir), report_pool, clock);
  ScanWatch scans(context, report_pool, scanner::UsageDatabase::file_in(config.node.data_dir));
  Metrics metrics(server, scans, clock);
  Api api(context, {node, version, draw_run(), tracker::DrivePaths(config.drives)}, **persistence, rules,
          saver, committer, peers, etcd ? &*etcd : nullptr, reports, metrics, answers, large_bodies, *access,
          clock);
  Reload reloading(config, reloadable(server, serving, peers, api, tls_servers, clock));
  asio::co_spawn(context, watch_signals(signals, pool, reload, reloading, manager),
                 [&](const std::exception_ptr& failure) {
                   rethrow(failure);
                   manager.stop();
                   server.stop();
                   peers.stop();
                   if (etcd) etcd->stop();
                   saver.stop();
                 });
  server.start(
      [&](const HttpRequest& request) {
        return metrics.measure(request, route_of(request.path), api.handle(request));
      },
      [&](const HttpRequest& request) {
        auto refused = api.admit(request);
        if (refused) {
          metrics.refused(route_of(request.path), refused->status, refused->problem);
          api.note_refused(request);
        }
        return refused;
      },
      [&](const HttpRequest& request, const Problem& problem) {
        metrics.refused(route_of(request.path), problem.status, problem.code);
        api.note_refused(request);
      });
  peers.start();
  if (etcd) etcd->start();
  saver.start();
  for (const std::string& url : *urls) spdlog::info("listening on {}", url);
  manager.serve([&] { return status_of(**persistence, api, peers, reloading); });
  serving.run(context);

  manager.say("saving the last snapshot");
  const auto last = (*persistence)->stop();
  if (!last) return last.error();
  if (!last->durable()) {
    return base::Error(std::make_error_code(std::errc::io_error),
                       "stopped, but no drive took the last snapshot: the next start is one after a crash");
  }
  spdlog::info("stopped cleanly with snapshot {}", last->generation);
  return {};
}

}  // namespace spoor::daemon
