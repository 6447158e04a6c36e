#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "peer/endpoint.h"

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
            std::vector<peer::Endpoint> peers, const base::Clock& clock);

  // Who is asked besides the peers given at the start; a new one at once.
  void set_members(const std::vector<peer::Endpoint>& members);

  void start();
  void stop();

  const std::vector<PeerState>& states() const { return states_; }

 private:
  boost::asio::awaitable<void> run();
  void take(PeerState now);

  boost::asio::io_context& context_;
  boost::asio::thread_pool& pool_;
  const std::string cluster_;
  const std::vector<peer::Endpoint> static_endpoints_;
  std::vector<peer::Endpoint> endpoints_;
  const base::Clock& clock_;
  boost::asio::steady_timer timer_;
  bool stopped_ = false;
  bool has_new_ = false;
  std::vector<PeerState> states_;
};

}  // namespace spoor::daemon
