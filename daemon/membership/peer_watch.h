#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/endpoint.h"
#include "daemon/membership/introduction.h"
#include "daemon/process/timer.h"
#include "peer/http/credentials.h"
#include "peer/http/http_transport.h"
#include "peer/membership/membership.h"
#include "tracker/cycles/peer_book.h"

namespace spoor::daemon {

struct PeerState {
  std::string url = {};
  std::string name = {};              // empty until the first response
  std::string state = "unknown";      // "unknown", "up" or "down"
  std::string error = {};             // why it is down
  tracker::InstanceId instance = {};  // none until the first response
  bool is_self = false;               // it is an address of this daemon
  std::optional<base::WallTime> last_seen = {};
};

struct DnsState {
  std::string source;       // as in `peers.dns`
  std::string error;        // why members may be missing; empty: none are
  std::size_t members = 0;  // its addresses, those of the last good answer included while there is an error
};

// Polls the peers: the static ones, the members that DNS names list, and those in etcd. With each request
// this node introduces itself (daemon/membership/introduction.h); what responds is recorded, and shown in the
// status.
//
// Lives on the thread of `context`; DNS queries and requests run on `pool`. All references must outlive it.
class PeerWatch {
 public:
  struct Options {
    std::string cluster;
    std::uint64_t run = 0;  // of this daemon: it is not its own peer
    bool has_etcd = false;  // set_members() will be called
    std::vector<base::Endpoint> static_endpoints = {};
    peer::Credentials credentials = {};
    std::shared_ptr<peer::MemberSource> dns = {};  // none: null
    peer::MakeTransport make_transport = peer::make_http_transport;
  };

  PeerWatch(boost::asio::io_context& context, boost::asio::thread_pool& pool, Options options,
            Introduction& introduction, const base::Clock& clock, Timers& timers);

  // From the next round on.
  void set_credentials(const peer::Credentials& credentials);

  const peer::Credentials& credentials() const { return credentials_; }

  // Replaces the static peers. All peers are polled at once.
  void set_peers(std::vector<base::Endpoint> static_endpoints);

  // Replaces the DNS names; their last-known members are gone.
  void set_dns(std::shared_ptr<peer::MemberSource> dns);

  // Replaces the members in etcd. New ones are polled at once.
  void set_members(std::vector<base::Endpoint> members);

  // A daemon has introduced itself. If it did not respond in the last round, all peers are polled at once: it
  // may have started just now, or have lost its record of this node. Once until the next round that is due:
  // one that is no peer of this node, and so polls it in turn, does not make it poll without a pause.
  void meet(const tracker::PeerId& member);

  void start();
  void stop();

  const std::vector<base::Endpoint>& static_endpoints() const { return static_endpoints_; }

  // Those of states(), in that order.
  const std::vector<base::Endpoint>& endpoints() const { return endpoints_; }
  const std::vector<PeerState>& states() const { return states_; }
  // Without the addresses of this daemon, once it has responded there.
  std::vector<PeerState> others() const;
  const std::vector<DnsState>& dns_states() const { return dns_states_; }
  // Whether the DNS names were looked up since they were set; true without names.
  bool is_dns_read() const;

  // The expiry of this node's own certificate for peers, and of the last of its authorities; none: not
  // configured.
  struct TlsExpiry {
    std::optional<base::WallTime> certificate;
    std::optional<base::WallTime> ca;
  };
  const TlsExpiry& tls_expiry() const { return tls_expiry_; }

 private:
  struct Dns;
  struct Round;

  void merge();
  void poll_now();
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<Round> poll(std::shared_ptr<Dns> dns, std::vector<base::Endpoint> known,
                                     std::unique_ptr<peer::Transport> transport);
  boost::asio::awaitable<void> take(Round round);
  void take(PeerState now);

  boost::asio::io_context& context_;
  boost::asio::thread_pool& pool_;
  const Options options_;
  Introduction& introduction_;
  const base::Clock& clock_;
  std::unique_ptr<Timer> timer_;
  std::vector<base::Endpoint> static_endpoints_;
  std::vector<base::Endpoint> members_;        // in etcd
  std::vector<base::Endpoint> dns_endpoints_;  // of the last round
  std::vector<base::Endpoint> endpoints_;      // all, each once
  std::shared_ptr<Dns> dns_;                   // used on the pool
  peer::Credentials credentials_;
  TlsExpiry tls_expiry_;
  std::set<tracker::PeerId> met_;  // since the last round that was due
  bool stopped_ = false;
  bool has_new_ = false;
  bool dns_read_ = false;
  bool is_unlisted_ = false;  // the DNS lists other nodes, and not this one
  bool members_read_;         // those in etcd
  std::vector<PeerState> states_;
  std::vector<DnsState> dns_states_;
};

}  // namespace spoor::daemon
