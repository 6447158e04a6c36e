#include "daemon/daemon.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_future.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/data_dir.h"
#include "base/file_system.h"
#include "config/derived.h"
#include "config/logging.h"
#include "config/secret_file.h"
#include "daemon/http/http_server.h"
#include "daemon/listeners.h"
#include "daemon/node.h"
#include "daemon/options.h"
#include "daemon/process/reload.h"
#include "daemon/process/service_manager.h"
#include "daemon/process/task.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

base::Result<base::FileLock> lock_data_dir(const std::filesystem::path& data_dir) {
  std::error_code error;
  base::PosixFileSystem files;
  const auto folder = data_dir.has_filename() ? data_dir : data_dir.parent_path();
  std::filesystem::create_directories(folder.parent_path(), error);  // what fails here fails below
  if (const auto created = files.create_directory(folder); !created) {
    return base::wrap("node.data_dir", created.error());
  }
  auto lock = base::FileLock::try_acquire(data_dir / base::data_dir::spoord_lock);
  if (!lock) return lock.error();
  std::optional<base::FileLock> held = *std::move(lock);
  if (!held) {
    return base::Error(std::make_error_code(std::errc::device_or_resource_busy),
                       fmt::format("another spoord runs on node.data_dir {}", data_dir.native()));
  }
  return std::move(*held);
}

// The state of the last run. Records on disk that a run has begun, so that a crash from here on is detected.
base::Result<std::unique_ptr<tracker::Persistence>> load(base::FileSystem& files, const base::Clock& clock,
                                                         const config::Config& config) {
  for (const std::string& overlap : config::find_drive_overlaps(config)) spdlog::error("{}", overlap);
  auto persistence = tracker::Persistence::start(
      files, clock, persistence_options(config, config::namespace_rules(config).fingerprint()));
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

base::Result<NodeSecrets> read_secrets(const config::Config& config, base::WallTime now) {
  auto access = load_access(config.auth);
  if (!access) return access.error();
  auto peers = peer_credentials(config.peers);
  if (!peers) return peers.error();
  if (const auto expiry = certificate_expiry(config.peers.tls, *peers, now)) {
    spdlog::error("{}: peers refuse it", *expiry);
  }
  NodeSecrets secrets{*std::move(access), *peers, {}};
  if (!config.peers.etcd) return secrets;
  auto etcd = daemon::etcd_secrets(*config.peers.etcd);
  if (!etcd) return etcd.error();
  if (const auto expiry = certificate_expiry(config.peers.etcd->tls, etcd->etcd, now)) {
    spdlog::error("{}: etcd refuses it", *expiry);
  }
  secrets.etcd = *std::move(etcd);
  return secrets;
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

bool reload_certificates(const HttpServer& server, base::WallTime now) {
  bool all_good = true;
  for (const auto& tls : server.tls()) {
    if (const auto reloaded = tls->reload(now); !reloaded) {
      all_good = false;
      spdlog::error("a certificate stays as it was: {}", reloaded.error().message);
    }
  }
  return all_good;
}

// An expired certificate does not replace one that is valid.
bool reload_credentials(Node& node, const config::Config& fresh, base::WallTime now) {
  const auto credentials = peer_credentials(fresh.peers);
  const auto in_use = node.peers().tls_expiry().certificate;
  const bool is_valid_in_use = in_use && now <= *in_use;
  const auto expiry = credentials ? certificate_expiry(fresh.peers.tls, *credentials, now) : std::nullopt;
  if (credentials && !(expiry && is_valid_in_use)) {
    node.peers().set_credentials(*credentials);
    return true;
  }
  spdlog::error("the credentials for peers stay as they were: {}",
                credentials ? *expiry : credentials.error().message);
  return false;
}

// `peers.etcd` itself needs a restart: only its files are read again.
bool reload_etcd_secrets(Node& node, const std::optional<config::Etcd>& etcd, base::WallTime now) {
  if (node.etcd() == nullptr) return true;
  auto secrets = daemon::etcd_secrets(*etcd);
  const auto expiry = secrets ? certificate_expiry(etcd->tls, secrets->etcd, now) : std::nullopt;
  if (secrets && !expiry) {
    node.etcd()->set_secrets(*std::move(secrets));
    return true;
  }
  spdlog::error("the credentials for etcd stay as they were: {}", expiry ? *expiry : secrets.error().message);
  return false;
}

// What a reload applies. All references must outlive the result.
std::vector<Reloadable> reloadable(const config::Config& started, HttpServer& server, Node& node,
                                   const base::Clock& clock) {
  using config::Config;
  const auto set_limits = [&server](const Config& fresh) {
    server.set_limits(http_limits(fresh, server.others().size()));
    return true;
  };
  const auto set_log = [](const Config& fresh) {
    config::set_log_level(fresh.log.level);
    return true;
  };
  const auto set_peers = [&node](const Config& fresh) {
    node.set_peers(fresh.peers);
    return true;
  };
  const auto set_watched = [&node](const Config& fresh) {
    node.watched_drives().set_watched(config::watched_drives(fresh));
    return true;
  };
  return {
      {{"log.level"}, set_log},
      {{"watch.drives"}, set_watched},
      {{"limits.max_body", "limits.max_bodies", "limits.max_connections"}, set_limits},
      {{"peers.static", "peers.dns", "peers.dns_servers", "peers.dns_tls", "peers.forget_after"}, set_peers},
      {{"peers.token_file", "peers.token_to_all", "peers.tls"},
       [&](const Config& fresh) { return reload_credentials(node, fresh, clock.wall_now()); }},
      {{}, [&](const Config&) { return reload_etcd_secrets(node, started.peers.etcd, clock.wall_now()); }},
      {{"auth.tokens", "auth.unix", "auth.certificates"},
       [&](const Config& fresh) { return reload_access(node.api(), fresh); }},
      {{}, [&](const Config&) { return reload_certificates(server, clock.wall_now()); }},
  };
}

using ReadConfig = std::function<base::Result<config::Config>()>;

asio::awaitable<void> watch_signals(asio::signal_set& signals, asio::thread_pool& pool,
                                    const ReadConfig& read, Reload& reload, ServiceManager& manager) {
  for (;;) {
    const auto [error, signal] = co_await signals.async_wait(as_result);
    if (error) co_return;
    if (signal != SIGHUP) {
      spdlog::info("stopping on signal {}", signal);
      co_return;
    }
    manager.reloading();
    const auto fresh = co_await run_on(pool, [&read] { return read(); });
    reload.apply(fresh);
    manager.reloaded();
  }
}

// Until a signal stops it.
asio::awaitable<void> serve(Node& node, ServiceManager& manager, Reload& reload, const ReadConfig& read,
                            asio::signal_set& signals, const std::vector<std::string>& urls) {
  co_await node.start();
  for (const std::string& url : urls) spdlog::info("listening on {}", url);
  manager.serve([&] { return node.status_line(reload.failed()); });
  co_await watch_signals(signals, node.pool(), read, reload, manager);
  manager.stop();
  node.stop();
}

base::Result<> save_last(asio::io_context& context, Node& node) {
  auto saving = asio::co_spawn(context, node.save_last(), asio::use_future);
  context.restart();
  context.run();
  const base::Result<tracker::SavedSnapshot> last = saving.get();
  if (!last) return last.error();
  if (!last->durable()) {
    return base::Error(std::make_error_code(std::errc::io_error),
                       "stopped, but no drive took the last snapshot: the next start is as after a crash");
  }
  spdlog::info("stopped cleanly with snapshot {}", last->generation);
  return {};
}

// Ends the process without waiting for the threads of drives that hang. They can't be interrupted, and use
// objects that a return from run() destroys. All that a stop writes is on disk by now.
//
// The kernel keeps the process, and with it spoord.lock, until the last system call on such a drive returns.
// So no write of this run can follow one of the next.
[[noreturn]] void end_process(const base::Result<>& done, const config::Config::Log& log) {
  if (done) {
    spdlog::warn("a drive hangs: the process is gone once the drive responds");
  } else {
    config::print_failure("spoord", log, done.error().message);
  }
  spdlog::default_logger()->flush();
  std::fflush(nullptr);
  std::_Exit(done ? EXIT_SUCCESS : EXIT_FAILURE);
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
  const auto now = base::SystemClock().wall_now();
  const auto note_expiry = [&](const std::optional<config::PeerTls>& tls,
                               const peer::Credentials& credentials) {
    if (const auto expiry = certificate_expiry(tls, credentials, now)) problems.push_back(*expiry);
  };
  const auto is_tls_here = [&](const std::optional<config::PeerTls>& tls) {
    return !tls || is_here(tls->ca, tls->certificate, tls->key);
  };
  if (is_here(config.peers.token_file) && is_tls_here(config.peers.tls)) {
    const auto credentials = peer_credentials(config.peers);
    note(credentials);
    if (credentials) note_expiry(config.peers.tls, *credentials);
  }
  const auto& etcd = config.peers.etcd;
  if (etcd && is_here(etcd->password_file) && is_tls_here(etcd->tls)) {
    const auto secrets = daemon::etcd_secrets(*etcd);
    note(secrets);
    if (secrets) note_expiry(etcd->tls, secrets->etcd);
  }
  return problems;
}

base::Result<> run(const config::Config& config, const std::function<base::Result<config::Config>()>& reload,
                   const std::string& version) {
  spdlog::info("spoord {}: node '{}' of cluster '{}'", version, config.node.name, config.node.cluster);
  const auto lock = lock_data_dir(config.node.data_dir);
  if (!lock) return lock.error();
  asio::io_context context(1);
  asio::signal_set signals(context, SIGTERM, SIGINT, SIGHUP);  // from here on a stop is a clean one
  HttpServer server(context, {}, config.limits.threads);
  ServiceManager manager(context, server.others());
  manager.notify_status("loading");

  const base::SystemClock clock;
  auto secrets = read_secrets(config, clock.wall_now());
  if (!secrets) return secrets.error();
  server.set_limits(http_limits(config, server.others().size()));
  // Detects a port in use before anything changes on disk.
  const auto urls = open_listeners(server, config, clock.wall_now());
  if (!urls) return urls.error();
  base::PosixFileSystem files;
  const auto persistence = load(files, clock, config);
  if (!persistence) return persistence.error();
  Node node(context, server, config, version, **persistence, *std::move(secrets), clock);

  Reload reloading(config, reloadable(config, server, node, clock));
  asio::co_spawn(context, serve(node, manager, reloading, reload, signals, *urls), rethrow);
  server.run();

  manager.notify_status("saving the last snapshot");
  auto done = save_last(context, node);
  if (node.has_hanging_drive()) end_process(done, config.log);
  return done;
}

}  // namespace spoor::daemon
