// One connection of the HTTP server, and the state that all connections of a thread share.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "daemon/http/http_message.h"
#include "daemon/http/http_places.h"
#include "daemon/process/log_limit.h"

namespace spoor::daemon {

// Of one thread.
struct HttpLimits {
  std::uint64_t body_bytes_max = std::uint64_t{8} << 20U;
  // For all requests that are being read or handled. A small body is never refused because of it.
  std::uint64_t bodies_bytes_max = std::uint64_t{24} << 20U;
  std::uint32_t header_bytes_max = 16U << 10U;
  std::size_t connections_max = 1024;
  // At connections_max, a connection that has waited for its client for this time is evicted for a new one;
  // one of a peer with more than its share at once: see HttpPlace.
  std::chrono::milliseconds yield_after{5'000};
  std::chrono::milliseconds idle_max{75'000};  // between two requests
  // To read a request, and to write each part of a response.
  std::chrono::milliseconds request_max{30'000};
  std::chrono::milliseconds grace_max{10'000};  // at a stop, for open requests
  std::chrono::milliseconds first_max{2'000};   // at a stop, for the first request of a new connection
};

struct HttpService {
  using Handler = std::function<boost::asio::awaitable<HttpResponse>(const HttpRequest&)>;
  using Admission = std::function<std::optional<HttpResponse>(const HttpRequest&)>;
  using Refusal = std::function<void(const HttpRequest&, const Problem&)>;

  // All are called on the thread of the connection; all but `handle` may be empty.
  Handler handle;
  Admission admit = {};  // before the body is read; a response that it returns is sent instead of handle()'s
  Refusal refused = {};  // for a request that the server refuses after its header and before handle()
  // Of the body of an admitted request, if it is more than HttpLimits has. May be empty.
  std::function<std::uint64_t(const HttpRequest&)> body_bytes_max = {};
};

class HttpSession;
class HttpStream;

// The sessions of one thread.
struct HttpSessions {
  explicit HttpSessions(std::shared_ptr<HttpTotals> of_all) : totals(std::move(of_all)) {}

  // The last session has ended. Calls on_last_end once.
  void end() {
    if (const auto notify = std::exchange(on_last_end, {})) notify();
  }

  const std::shared_ptr<HttpTotals> totals;
  HttpPlaces places{*totals};
  HttpLimits limits;
  HttpService service;
  std::set<HttpSession*> all;  // each removes itself when it ends
  std::string server_fields;   // the Server and Date fields of the current second
  std::time_t server_fields_made_at = 0;
  LogLimit log_limit;
  bool stopping = false;
  std::function<void()> on_last_end;  // set by a stop
};

// Its coroutine, run() or refuse(), owns it. Used on the thread of its HttpSessions.
class HttpSession {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Clock = std::chrono::steady_clock;

  // `tls`: none for a plain connection.
  HttpSession(std::shared_ptr<HttpSessions> sessions, std::unique_ptr<HttpPlace> place, Socket socket,
              Caller caller, std::shared_ptr<boost::asio::ssl::context> tls);
  ~HttpSession();
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  // Serves one request after the other until the connection ends.
  boost::asio::awaitable<void> run();

  // Sends status 503 without reading a request.
  boost::asio::awaitable<void> refuse();

  // Ends the session: at once if it waits for a further request, otherwise after its response. The first
  // request of a new connection is still served if it arrives within first_max.
  void stop();

  // Cancels the operations of the socket.
  void cancel();

  // Cancels them if the deadline has passed.
  void expire(Clock::time_point now);

 private:
  class Exchange;
  void arm(std::chrono::milliseconds time);
  boost::asio::awaitable<bool> shake_hands();
  boost::asio::awaitable<bool> serve_one();
  boost::asio::awaitable<bool> read_header();
  boost::asio::awaitable<bool> read_body();
  boost::asio::awaitable<bool> read_declared(std::uint64_t length);
  boost::asio::awaitable<bool> read_chunks();
  boost::asio::awaitable<bool> fail(std::optional<Problem> problem);
  // What answer() does if the client does not read.
  enum class Unread { wait, end };
  boost::asio::awaitable<bool> answer(const HttpResponse& response, bool keep_alive, bool head_only,
                                      Unread unread = Unread::wait);
  boost::asio::awaitable<bool> answer_early(const HttpResponse& response);
  boost::asio::awaitable<void> answer_last(const Problem& problem);
  boost::asio::awaitable<void> answer_last(const HttpResponse& response);
  boost::asio::awaitable<void> end();

  const std::shared_ptr<HttpSessions> sessions_;
  const std::unique_ptr<HttpStream> stream_;
  const std::unique_ptr<HttpPlace> place_;  // destroyed before its socket
  const std::unique_ptr<Exchange> exchange_;
  Clock::time_point deadline_ = Clock::time_point::max();
  bool idle_ = false;
  bool is_new_ = true;  // no byte has been received
  bool timed_out_ = false;
  bool cancelled_ = false;
  bool has_unread_ = false;  // the request was refused before it was read completely
  bool is_stuck_ = false;    // the client does not read or has disconnected: write nothing more
};

}  // namespace spoor::daemon
