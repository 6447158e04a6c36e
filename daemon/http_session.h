// One connection of the HTTP server, and what all of them share.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "daemon/http_message.h"
#include "daemon/problem.h"

namespace spoor::daemon {

struct HttpLimits {
  std::uint64_t body_bytes_max = std::uint64_t{8} << 20U;
  // Of all requests that are being read or handled; small ones are not counted against it.
  std::uint64_t bodies_bytes_max = std::uint64_t{24} << 20U;
  std::uint32_t header_bytes_max = 16U << 10U;
  std::size_t connections_max = 1024;
  // Where all connections are taken, one that has waited so long makes room for a new one.
  std::chrono::milliseconds yield_after{5'000};
  std::chrono::milliseconds idle_max{75'000};  // between two requests
  std::chrono::milliseconds request_max{
      30'000};                                  // for reading a request, and for writing a part of an answer
  std::chrono::milliseconds grace_max{10'000};  // for what is under way at the end
  std::chrono::milliseconds first_max{2'000};   // at the end, for the first request of a new connection
};

struct HttpService {
  using Handler = std::function<boost::asio::awaitable<HttpResponse>(const HttpRequest&)>;
  using Admission = std::function<std::optional<HttpResponse>(const HttpRequest&)>;

  Handler handle;
  Admission admit;  // may be empty
};

class HttpSession;

// Of one server, on one thread.
struct HttpSessions {
  HttpLimits limits;
  HttpService service;
  std::set<HttpSession*> all;  // each removes itself when it ends
  std::uint64_t body_bytes_held = 0;
  std::uint64_t answer_bytes_held = 0;
  std::map<std::string, std::uint64_t>
      unread;        // requests refused before they were read, by the problem's code
  std::string date;  // for answers
  std::time_t date_made_at = 0;
  bool stopping = false;
  std::function<void()> on_last_end;  // called when the last one ends while stopping
};

// Lives as long as its coroutine.
class HttpSession {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Clock = std::chrono::steady_clock;

  // `tls`: none for a plain connection.
  HttpSession(std::shared_ptr<HttpSessions> sessions, Socket socket, Caller caller,
              std::shared_ptr<boost::asio::ssl::context> tls);
  ~HttpSession();
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  // Answers one request after the other until the connection ends.
  boost::asio::awaitable<void> run();

  // Answers 503, whatever is asked.
  boost::asio::awaitable<void> refuse();

  // Ends at once if it waits for a further request, otherwise after its answer. A client that has just
  // connected does not know that it could be too late: its request is waited for.
  void stop();

  // Ends what the socket does.
  void cancel();
  bool is_cancelled() const { return cancelled_; }

  // The same if its time is over.
  void expire(Clock::time_point now);

  // Since when it has waited for a request, or for the rest of a header: whoever does so longest makes room
  // for others. Nothing while a request is being read, handled or answered.
  std::optional<Clock::time_point> waiting_since() const { return waiting_since_; }

 private:
  class Stream;
  struct Incoming;
  // Why a body did not come whole: what to tell the client, unless it has gone.
  struct Broken {
    std::optional<Problem> problem;
  };

  static std::optional<Broken> broken_by(std::optional<Problem> problem) {
    return Broken{std::move(problem)};
  }
  void arm(std::chrono::milliseconds time);
  bool has_input() const;
  boost::asio::awaitable<bool> shake_hands();
  boost::asio::awaitable<bool> serve_one();
  boost::asio::awaitable<bool> read_header(Incoming& incoming);
  boost::asio::awaitable<bool> read_body(Incoming& incoming);
  boost::asio::awaitable<std::optional<Broken>> read_declared(Incoming& incoming, std::uint64_t length);
  boost::asio::awaitable<std::optional<Broken>> read_chunks(Incoming& incoming);
  boost::asio::awaitable<bool> answer(const HttpResponse& response, bool keep_alive, bool head_only);
  boost::asio::awaitable<bool> answer_early(Incoming& incoming, const HttpResponse& response);
  boost::asio::awaitable<void> answer_last(const Problem& problem);
  boost::asio::awaitable<void> answer_last(const HttpResponse& response);
  boost::asio::awaitable<void> end();

  const std::shared_ptr<HttpSessions> sessions_;
  Caller caller_;
  std::unique_ptr<Stream> stream_;
  Clock::time_point deadline_ = Clock::time_point::max();
  std::optional<Clock::time_point> waiting_since_;
  bool idle_ = false;
  bool is_new_ = true;  // nothing has come yet
  bool timed_out_ = false;
  bool cancelled_ = false;
  bool has_unread_ = false;  // the request was refused before all of it was read
};

}  // namespace spoor::daemon
