#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "daemon/timer.h"
#include "peer/credentials.h"
#include "peer/endpoint.h"
#include "peer/http_transport.h"

namespace spoor::daemon {

struct PeerState {
  std::string url;
  std::string name;               // empty until it first answered
  std::string state = "unknown";  // "unknown", "up" or "down"
  std::string error;              // why it is down
  std::optional<base::WallTime> last_seen;
};

// Asks the peers now and then whether they are there: for the status alone. Nothing else
// depends on it.
//
// Lives on the thread of `context`; the asking itself is done on `pool`. All references must outlive
// it.
class PeerWatch {
 public:
  PeerWatch(boost::asio::io_context& context, boost::asio::thread_pool& pool, std::string cluster,
            std::vector<peer::Endpoint> peers, const peer::Credentials& credentials, const base::Clock& clock,
            Timers& timers, peer::MakeTransport make_transport = peer::make_http_transport);

  // From now on.
  void set_credentials(const peer::Credentials& credentials);

  // Who is asked instead of the peers given at the start.
  void set_peers(std::vector<peer::Endpoint> peers);

  // Who is asked besides; a new one at once.
  void set_members(std::vector<peer::Endpoint> members);

  void start();
  void stop();

  const std::vector<PeerState>& states() const { return states_; }

  // When the certificate that this node shows its peers ends to be valid, and the last of the authorities
  // that it believes; nothing where the configuration names none.
  struct TlsExpiry {
    std::optional<base::WallTime> certificate;
    std::optional<base::WallTime> ca;
  };
  const TlsExpiry& tls_expiry() const { return tls_expiry_; }

 private:
  void gather();
  boost::asio::awaitable<void> run();
  void take(PeerState now);

  boost::asio::io_context& context_;
  boost::asio::thread_pool& pool_;
  const std::string cluster_;
  std::vector<peer::Endpoint> static_endpoints_;
  std::vector<peer::Endpoint> members_;
  std::vector<peer::Endpoint> endpoints_;  // both, each once
  peer::Credentials credentials_;
  TlsExpiry tls_expiry_;
  const base::Clock& clock_;
  const peer::MakeTransport make_transport_;
  std::unique_ptr<Timer> timer_;
  bool stopped_ = false;
  bool has_new_ = false;
  std::vector<PeerState> states_;
};

}  // namespace spoor::daemon
