// One exchange over HTTP: what HttpTransport and EtcdWatch have in common.
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

#include "base/error.h"
#include "peer/endpoint.h"

namespace spoor::peer {

// Errors come back as values: a peer that hangs up is not exceptional.
inline constexpr auto as_result = boost::asio::as_tuple(boost::asio::use_awaitable);

// A request on its way, and the time it may take. Shared with the handler of its timer, which may run after
// the exchange has ended. Not thread-safe.
struct Exchange {
  using Socket = boost::asio::generic::stream_protocol::socket;

  using TlsStream = boost::asio::ssl::stream<Socket>;

  explicit Exchange(const boost::asio::any_io_executor& executor)
      : socket(executor), resolver(executor), deadline(executor), pause(executor) {}

  // Its time is over: whatever it waits for ends. Only a name that is being looked up by the system is waited
  // for.
  void expire();

  Socket socket;                   // not where `tls` has it
  std::unique_ptr<TlsStream> tls;  // none: plain
  boost::asio::ip::tcp::resolver resolver;
  boost::asio::steady_timer deadline;
  boost::asio::steady_timer pause;  // between two attempts
  bool timed_out = false;
};

// Lets it expire after `timeout`, unless its deadline is cancelled.
void arm(const std::shared_ptr<Exchange>& exchange, std::chrono::milliseconds timeout);

// The timer must not keep the loop running after the exchange.
struct Disarm {
  boost::asio::steady_timer& deadline;

  explicit Disarm(boost::asio::steady_timer& timer) : deadline(timer) {}
  Disarm(const Disarm&) = delete;
  Disarm& operator=(const Disarm&) = delete;
  ~Disarm() { deadline.cancel(); }
};

// Connects its socket, to the first of the host's addresses that takes it. `endpoint` must live as long.
boost::asio::awaitable<base::Result<>> open(std::shared_ptr<Exchange> exchange, const Endpoint& endpoint);

// "cannot `what`: ..."
base::Error failure(const Exchange& exchange, std::string_view what, const boost::system::error_code& code);

// How long to wait after so many attempts, from 1 on: doubled each time up to `most`, and between half and
// one and a half times that, so that many do not come back at the same moment.
std::chrono::milliseconds pause_after(unsigned attempts, std::chrono::milliseconds first,
                                      std::chrono::milliseconds most, std::minstd_rand& random);

}  // namespace spoor::peer
