// One connection of the HTTP server, and what all of them share.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "daemon/http_message.h"
#include "daemon/log_limit.h"
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
  using Refusal = std::function<void(const HttpRequest&, const Problem&)>;

  Handler handle;   // called on the thread of the connection
  Admission admit;  // the same; may be empty, as the next
  Refusal refused;  // told of a request whose header was read, and that nobody was asked about
};

class HttpSession;
class HttpStream;

// What the connections of all threads of a server take, and what came of them since the start. Thread-safe.
class HttpTotals {
 public:
  // One whose header was refused.
  void count_unread(const std::string& code) {
    const std::scoped_lock lock(mutex_);
    ++unread_[code];
  }
  std::map<std::string, std::uint64_t> unread() const {
    const std::scoped_lock lock(mutex_);
    return unread_;
  }

  std::atomic<std::size_t> open = 0;     // see HttpPlace
  std::atomic<std::size_t> served = 0;   // of these; the others wait for their turn, or are being refused
  std::atomic<bool> wants_room = false;  // a thread is being asked to end a connection
  std::atomic<std::uint64_t> accepted = 0;
  std::atomic<std::uint64_t> refused = 0;
  std::atomic<std::uint64_t> handshakes_failed = 0;
  std::atomic<std::uint64_t> body_bytes = 0;    // at present
  std::atomic<std::uint64_t> answer_bytes = 0;  // at present

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> unread_;  // by the problem's code
};

// Counts a connection as open, from when it is accepted to its end, and as served once it is.
class HttpPlace {
 public:
  explicit HttpPlace(std::shared_ptr<HttpTotals> totals) : totals_(std::move(totals)) { ++totals_->open; }
  HttpPlace(HttpPlace&&) = default;
  HttpPlace& operator=(HttpPlace&&) = delete;
  HttpPlace(const HttpPlace&) = delete;
  HttpPlace& operator=(const HttpPlace&) = delete;
  ~HttpPlace() {
    if (!totals_) return;
    --totals_->open;
    if (is_served_) --totals_->served;
  }

  // False where so many are served already.
  bool serve(std::size_t most) {
    std::size_t now = totals_->served;
    while (now < most && !is_served_) is_served_ = totals_->served.compare_exchange_weak(now, now + 1);
    return is_served_;
  }

 private:
  std::shared_ptr<HttpTotals> totals_;
  bool is_served_ = false;
};

// Of one thread.
struct HttpSessions {
  explicit HttpSessions(std::shared_ptr<HttpTotals> of_all) : totals(std::move(of_all)) {}

  // The last one has ended. Once.
  void end() {
    if (const auto told = std::exchange(on_last_end, {})) told();
  }

  const std::shared_ptr<HttpTotals> totals;
  HttpLimits limits;
  HttpService service;
  std::set<HttpSession*> all;  // each removes itself when it ends
  std::string server_fields;   // of the answers of this second
  std::time_t server_fields_made_at = 0;
  LogLimit log_limit;
  bool stopping = false;
  std::function<void()> on_last_end;  // of a stop
};

// Lives as long as its coroutine.
class HttpSession {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Clock = std::chrono::steady_clock;

  // `tls`: none for a plain connection.
  HttpSession(std::shared_ptr<HttpSessions> sessions, HttpPlace place, Socket socket, Caller caller,
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

  // Since when it has waited for a request, for the rest of a header, or for its client to read an answer:
  // the session that does so longest is ended to make room for others. Nothing while a body is being read, or
  // a request handled.
  std::optional<Clock::time_point> waiting_since() const { return waiting_since_; }

 private:
  class Exchange;
  // Why a body did not come whole: what to tell the client, unless it has gone.
  struct Broken {
    std::optional<Problem> problem;
  };

  static std::optional<Broken> broken_by(std::optional<Problem> problem) {
    return Broken{std::move(problem)};
  }
  void arm(std::chrono::milliseconds time);
  boost::asio::awaitable<bool> shake_hands();
  boost::asio::awaitable<bool> serve_one();
  boost::asio::awaitable<bool> read_header();
  boost::asio::awaitable<bool> read_body();
  boost::asio::awaitable<std::optional<Broken>> read_declared(std::uint64_t length);
  boost::asio::awaitable<std::optional<Broken>> read_chunks();
  // What an answer does where its client does not read.
  enum class Unread { wait, end };
  boost::asio::awaitable<bool> answer(const HttpResponse& response, bool keep_alive, bool head_only,
                                      Unread unread = Unread::wait);
  boost::asio::awaitable<bool> answer_early(const HttpResponse& response);
  boost::asio::awaitable<void> answer_last(const Problem& problem);
  boost::asio::awaitable<void> answer_last(const HttpResponse& response);
  boost::asio::awaitable<void> end();

  const std::shared_ptr<HttpSessions> sessions_;
  const HttpPlace place_;
  const std::unique_ptr<HttpStream> stream_;
  const std::unique_ptr<Exchange> exchange_;
  Clock::time_point deadline_ = Clock::time_point::max();
  std::optional<Clock::time_point> waiting_since_;
  bool idle_ = false;
  bool is_new_ = true;  // nothing has come yet
  bool timed_out_ = false;
  bool cancelled_ = false;
  bool has_unread_ = false;  // the request was refused before all of it was read
  bool is_stuck_ = false;    // its client does not read, or has gone: nothing more is written
};

}  // namespace spoor::daemon
