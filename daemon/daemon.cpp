#include "daemon/daemon.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <systemd/sd-daemon.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
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
#include "base/file_lock.h"
#include "base/file_system.h"
#include "config/advertised_url.h"
#include "config/print.h"
#include "daemon/api.h"
#include "daemon/committer.h"
#include "daemon/etcd_membership.h"
#include "daemon/http_server.h"
#include "daemon/logging.h"
#include "daemon/peer_watch.h"
#include "daemon/reports.h"
#include "daemon/saver.h"
#include "daemon/task.h"
#include "peer/endpoint.h"
#include "scanner/usage_database.h"
#include "tracker/persistence.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

constexpr std::size_t pool_threads = 4;  // one saves, one commits, one asks the peers, one asks etcd

base::Result<base::FileLock> lock_data_dir(const std::filesystem::path& data_dir) {
  std::error_code error;
  std::filesystem::create_directories(data_dir, error);
  if (error) {
    return base::Error(error,
                       fmt::format("cannot create node.data_dir {}: {}", data_dir.native(), error.message()));
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

// What the last run left, and on disk the note that a run is under way, so that a crash from here on is
// seen for one.
base::Result<std::unique_ptr<tracker::Persistence>> load(base::FileSystem& files, const base::Clock& clock,
                                                         const config::Config& config,
                                                         const std::string& rules) {
  tracker::Persistence::Options options;
  options.data_dir = config.node.data_dir;
  options.drives = config.drives;
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

// Binds every listener; gives the lines to log when they serve.
base::Result<std::vector<std::string>> listen(HttpServer& server, const config::Config& config) {
  std::vector<std::string> urls;
  for (const config::Listener& listener : config.listen) {
    const auto url = listener.unix_path.empty() ? server.listen_tcp(listener.address, listener.port)
                                                : server.listen_unix(listener.unix_path);
    if (url) {
      urls.push_back(*url);
      if (listener.insecure) {
        spdlog::warn("{} is open to the network without TLS or tokens (\"insecure\": true)", *url);
      }
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

EtcdMembership::Options etcd_options(const config::Config& config, const std::string& instance) {
  const config::Etcd& etcd = *config.peers.etcd;
  return {.endpoints = parse_all(etcd.endpoints),
          .place = {etcd.prefix, config.node.cluster},
          .self = {config.node.name, config::advertised_url(config).value(), instance},
          .ttl = std::chrono::floor<std::chrono::seconds>(etcd.ttl),
          .forget_after = etcd.forget_after,
          .data_dir = config.node.data_dir,
          .boot_id = read_boot_id()};
}

void apply_reload(const config::Config& running, const base::Result<config::Config>& fresh) {
  if (!fresh) {
    spdlog::error("not reloaded, everything stays as it was: {}", fresh.error().message);
    return;
  }
  set_log_level(fresh->log.level);
  spdlog::info("reloaded: log.level");
  auto changed = config::changed_keys(running, *fresh);
  std::erase(changed, "log.level");
  if (!changed.empty()) spdlog::warn("changed, but needs a restart: {}", fmt::join(changed, ", "));
}

asio::awaitable<void> watch_signals(asio::signal_set& signals, const config::Config& config,
                                    const std::function<base::Result<config::Config>()>& reload) {
  for (;;) {
    const auto [error, signal] = co_await signals.async_wait(asio::as_tuple(asio::use_awaitable));
    if (error) co_return;
    if (signal != SIGHUP) {
      spdlog::info("stopping on signal {}", signal);
      co_return;
    }
    apply_reload(config, reload());
  }
}

}  // namespace

base::Result<> run(const config::Config& config, const std::function<base::Result<config::Config>()>& reload,
                   const std::string& version) {
  const tracker::NodeIdentity node{config.node.cluster, config.node.name};
  spdlog::info("spoord {}: node '{}' of cluster '{}'", version, node.node, node.cluster);
  const auto lock = lock_data_dir(config.node.data_dir);
  if (!lock) return lock.error();

  asio::io_context context(1);
  asio::signal_set signals(context, SIGTERM, SIGINT, SIGHUP);  // from here on a stop is a clean one
  HttpServer server(context, {.body_bytes_max = config.limits.max_body_bytes,
                              .connections_max = config.limits.max_connections});
  // First, so that a taken port is found before anything is changed on disk.
  const auto urls = listen(server, config);
  if (!urls) return urls.error();

  const base::SystemClock clock;
  base::PosixFileSystem files;
  const tracker::NamespaceRules rules = rules_of(config);
  const auto persistence = load(files, clock, config, rules.fingerprint());
  if (!persistence) return persistence.error();

  asio::thread_pool pool(pool_threads);
  asio::thread_pool answers(1);  // one large merge at a time, for the memory it takes
  asio::thread_pool report_pool(1);
  Saver saver(context, pool, **persistence, clock, config.tracker.save_interval);
  saver.save_here();  // replaces what could not be loaded, and shows early what can't be written
  Committer committer(context, pool, **persistence, saver, clock);
  PeerWatch peers(context, pool, node.cluster, parse_all(config.peers.static_urls), clock);
  std::optional<EtcdMembership> etcd;
  if (config.peers.etcd) {
    const std::string instance = (*persistence)->tracker().state().instance.to_string();
    etcd.emplace(context, pool, files, clock, etcd_options(config, instance),
                 [&peers](const std::vector<peer::Endpoint>& members) { peers.set_members(members); });
    etcd->register_here();  // before this node says that it is ready
  }
  Reports reports(scanner::UsageDatabase::file_in(config.node.data_dir), report_pool, clock);
  Api api({node, version, draw_run()}, **persistence, rules, saver, committer, peers, etcd ? &*etcd : nullptr,
          reports, answers, clock);
  asio::co_spawn(context, watch_signals(signals, config, reload), [&](const std::exception_ptr& failure) {
    rethrow(failure);
    ::sd_notify(0, "STOPPING=1");
    server.stop();
    peers.stop();
    if (etcd) etcd->stop();
    saver.stop();
  });
  server.start([&api](const HttpRequest& request) { return api.handle(request); });
  peers.start();
  if (etcd) etcd->start();
  saver.start();
  for (const std::string& url : *urls) spdlog::info("listening on {}", url);
  ::sd_notify(0, "READY=1");
  context.run();

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
