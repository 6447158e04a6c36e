#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "daemon/process/timer.h"
#include "peer/http/credentials.h"
#include "peer/http/http_transport.h"
#include "peer/membership/etcd_client.h"
#include "peer/membership/etcd_registration.h"
#include "peer/membership/membership.h"
#include "tracker/storage/instance_record.h"

namespace spoor::daemon {

struct EtcdStatus {
  bool ok = false;
  std::string error;
  bool registered = false;  // the node is alive in etcd, as far as known
  std::size_t members = 0;  // in the registry, as it was read last
};

// Keeps this node registered in etcd while the daemon runs, and reads the other members, every third of the
// time to live. While etcd does not respond, the last-known members stay in use; no mark and no scan waits.
//
// Lives on the thread of `context`; requests to etcd run on `pool`. All references must outlive it.
class EtcdMembership {
 public:
  struct Secrets {
    peer::Credentials etcd;  // TLS only
    std::string etcd_password = {};
  };
  struct Options {
    std::vector<base::Endpoint> endpoints;
    peer::EtcdLocation location;
    peer::RegisteredMember self;
    std::chrono::seconds ttl{};
    std::chrono::seconds forget_after{};
    std::string user = {};  // empty: etcd does not authenticate users
    Secrets secrets = {};
    peer::MakeTransport make_transport = peer::make_http_transport;
  };
  // Called after each refresh: when etcd has confirmed that it lists this node, and else why it has not.
  using OnRefreshed = std::function<void(const std::optional<tracker::KnownAt>&, const std::string& error)>;
  // Called with the endpoints of the other members, whenever they change.
  using OnMembers = std::function<void(std::vector<base::Endpoint>)>;

  EtcdMembership(boost::asio::io_context& context, boost::asio::thread_pool& pool, const base::Clock& clock,
                 Timers& timers, Options options, OnRefreshed on_refreshed, OnMembers on_members);

  // The first attempt, before start(): takes a few seconds at most.
  boost::asio::awaitable<void> register_here();

  // Keeps the node registered until stop(). After stop() it is not alive, and stays in the registry.
  void start();
  void stop();

  // Removes this node from the members, until etcd confirms that, and ends.
  void retire();

  // The registry as it is now. To be called on the thread of `context`; what is returned may be called on any
  // thread, and blocks.
  std::function<peer::SourceListing()> lister() const;

  // From the next refresh on.
  void set_secrets(Secrets secrets);

  const EtcdStatus& status() const { return status_; }

 private:
  boost::asio::awaitable<void> run();
  std::unique_ptr<peer::Transport> make_etcd_transport(std::chrono::milliseconds timeout) const;
  void apply_secrets();
  boost::asio::awaitable<void> refresh();
  base::Result<> leave();
  void take(const base::Result<>& done, base::WallTime began_at);
  void apply_registry(std::vector<peer::RegistryEntry> now);
  std::chrono::milliseconds pause();

  boost::asio::io_context& context_;
  boost::asio::thread_pool& pool_;
  const base::Clock& clock_;
  const Options options_;
  const OnRefreshed on_refreshed_;
  const OnMembers on_members_;
  std::unique_ptr<Timer> timer_;
  std::stop_source stop_;
  Secrets secrets_;                         // used on the pool
  std::optional<Secrets> pending_secrets_;  // for the next refresh
  std::unique_ptr<peer::Transport> transport_;
  peer::EtcdClient client_;
  peer::EtcdRegistration registration_;  // used on the pool while run() or register_here() waits for it
  std::minstd_rand jitter_;
  unsigned failures_ = 0;  // in a row
  EtcdStatus status_;
  std::vector<peer::RegistryEntry> registry_;
  std::atomic<bool> is_retired_ = false;
};

}  // namespace spoor::daemon
