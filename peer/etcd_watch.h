#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "peer/endpoint.h"
#include "peer/etcd_client.h"

namespace spoor::peer {

struct Exchange;

// Tells when something changes in a range of etcd, by etcd's own watch: one answer that never ends. It tells
// no more than that: whoever is told reads the range. A watch that ends is begun anew at the next endpoint,
// and what changed in between is told as one change.
//
// Lives on the thread of `context`. It must outlive its work there, which ends at once after stop(); only a
// host name that is being looked up by the system is waited for.
class EtcdWatch {
 public:
  struct Options {
    std::vector<Endpoint> endpoints;  // one at least
    EtcdRange range;
    // From the connection to etcd's word that it watches. From then on nothing is to be heard while nothing
    // changes; TCP asks whether the other end is still there.
    std::chrono::milliseconds timeout{2'000};
    // Between two attempts, doubled up to the second, give or take half of it.
    std::chrono::milliseconds first_pause{500};
    std::chrono::milliseconds pause_max{20'000};
  };

  // Called on the thread of `context`; each may call stop().
  struct Callbacks {
    // When the watch begins, and at each change from then on.
    std::function<void()> on_change;
    // When every endpoint was tried in vain; once, until the watch begins again. Gives the last failure.
    std::function<void(const base::Error&)> on_trouble;
  };

  // An answer of etcd that is longer ends the connection.
  static constexpr std::size_t answer_bytes_max = std::size_t{2} << 20U;

  EtcdWatch(boost::asio::io_context& context, Options options, Callbacks callbacks);
  EtcdWatch(const EtcdWatch&) = delete;
  EtcdWatch& operator=(const EtcdWatch&) = delete;
  ~EtcdWatch() = default;

  void start();
  void stop();

 private:
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<base::Error> watch(const Endpoint& endpoint);
  boost::asio::awaitable<base::Error> read();
  base::Result<> take(const std::string& answer);
  void begin();

  boost::asio::io_context& context_;
  const Options options_;
  const Callbacks callbacks_;
  boost::asio::steady_timer pause_;
  std::shared_ptr<Exchange> exchange_;
  std::minstd_rand random_{std::random_device{}()};
  std::size_t next_ = 0;   // the endpoint to try
  unsigned failures_ = 0;  // in a row
  bool stopped_ = false;
};

}  // namespace spoor::peer
