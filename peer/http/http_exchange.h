// One exchange over HTTP: common code of HttpTransport and EtcdWatch.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <random>
#include <string_view>

#include "base/endpoint.h"
#include "base/error.h"

namespace spoor::peer {

// Returns errors as values: a peer that closes its connection is not exceptional.
inline constexpr auto as_result = boost::asio::as_tuple(boost::asio::use_awaitable);

// A request in progress, and its deadline. Shared with the handler of its timer, which may run after the
// exchange has ended. Not thread-safe.
struct Exchange {
  using Socket = boost::asio::generic::stream_protocol::socket;

  using TlsStream = boost::asio::ssl::stream<Socket>;

  explicit Exchange(const boost::asio::any_io_executor& executor)
      : socket(executor), resolver(executor), deadline(executor), pause(executor) {}

  // Called at the deadline: cancels every pending operation, except a name lookup that the system is running.
  void expire();

  Socket socket;                   // moved into `tls` for a TLS connection
  std::unique_ptr<TlsStream> tls;  // none: plain
  boost::asio::ip::tcp::resolver resolver;
  boost::asio::steady_timer deadline;
  boost::asio::steady_timer pause;  // between two attempts
  bool timed_out = false;
};

// Calls expire() after `timeout`, unless the deadline is cancelled.
void arm(const std::shared_ptr<Exchange>& exchange, std::chrono::milliseconds timeout);

// Cancels the timer at the end of a scope: it must not keep the event loop running after the exchange.
struct Disarm {
  boost::asio::steady_timer& deadline;

  explicit Disarm(boost::asio::steady_timer& timer) : deadline(timer) {}
  Disarm(const Disarm&) = delete;
  Disarm& operator=(const Disarm&) = delete;
  ~Disarm() { deadline.cancel(); }
};

// Connects the socket to the first of the host's addresses that accepts. `endpoint` must outlive the call.
boost::asio::awaitable<base::Result<>> open(std::shared_ptr<Exchange> exchange,
                                            const base::Endpoint& endpoint);

// "cannot `what`: ..."
base::Error failure(const Exchange& exchange, std::string_view what, const boost::system::error_code& code);

// The pause after attempt number `attempts`, from 1: doubles each time up to `most`, with a jitter of 0.5 to
// 1.5, so that many clients do not retry at the same moment.
std::chrono::milliseconds pause_after(unsigned attempts, std::chrono::milliseconds first,
                                      std::chrono::milliseconds most, std::minstd_rand& random);

}  // namespace spoor::peer
