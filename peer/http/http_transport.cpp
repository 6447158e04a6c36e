#include "peer/http/http_transport.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "peer/http/certificate_names.h"

namespace spoor::peer {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::experimental::awaitable_operators::operator||;
using boost::system::error_code;
using Socket = asio::generic::stream_protocol::socket;
using TlsStream = asio::ssl::stream<Socket>;
using tcp = asio::ip::tcp;

// Returns errors as values: a peer that closes its connection is not exceptional.
constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

constexpr std::size_t header_bytes_max = std::size_t{64} << 10U;
constexpr std::size_t buffer_bytes_max = std::size_t{128} << 10U;  // does not hold the body
constexpr std::chrono::seconds connect_share_min{1};               // of the time to connect, for each address

struct Connection {
  Socket socket;                   // moved into `tls` for a TLS connection
  std::unique_ptr<TlsStream> tls;  // none: plain
};

// A request in progress, and its deadline.
struct Exchange : Connection {
  explicit Exchange(const asio::any_io_executor& executor)
      : Connection{Socket(executor), nullptr}, resolver(executor), deadline(executor), pause(executor) {}

  // Called at the deadline: cancels every pending operation, except a name lookup that the system is running.
  void expire() {
    timed_out = true;
    resolver.cancel();
    pause.cancel();
    error_code ignored;
    (tls ? tls->next_layer() : socket).close(ignored);
  }

  tcp::resolver resolver;
  asio::steady_timer deadline;
  asio::steady_timer pause;  // between two attempts, and before the next address is tried
  bool timed_out = false;
};

// "cannot `what`: ..."
base::Error failure(const Exchange& exchange, std::string_view what, const error_code& code) {
  const bool timed_out = exchange.timed_out || code == asio::error::timed_out;
  const error_code error = timed_out ? asio::error::timed_out : code;
  return {static_cast<std::error_code>(error),
          fmt::format("cannot {}: {}", what, timed_out ? "no answer in time" : error.message())};
}

// Connects the socket to the first of the host's addresses that accepts. Each gets its share of the time that
// is left, but a second at least: behind one that swallows packets there may be one that responds.
asio::awaitable<base::Result<>> open(Exchange& exchange, const base::Endpoint& endpoint) {
  std::vector<Socket::endpoint_type> addresses;
  error_code error;
  const auto numeric = asio::ip::make_address(endpoint.host, error);
  if (endpoint.is_unix()) {
    if (endpoint.unix_path.size() >= sizeof(sockaddr_un::sun_path)) {
      co_return failure(exchange, "connect", asio::error::name_too_long);
    }
    addresses.emplace_back(asio::local::stream_protocol::endpoint(endpoint.unix_path));
  } else if (!error) {  // name lookups run one after the other: an address must not wait for them
    addresses.emplace_back(tcp::endpoint(numeric, endpoint.port));
  } else {
    const auto [not_found, found] =
        co_await exchange.resolver.async_resolve(endpoint.host, std::to_string(endpoint.port), as_result);
    if (not_found) co_return failure(exchange, "resolve the host", not_found);
    for (const auto& entry : found) addresses.emplace_back(entry.endpoint());
  }
  error = asio::error::host_not_found;
  // asio::async_connect() would stop at an address whose family this machine does not support.
  for (std::size_t i = 0; error && i < addresses.size() && !exchange.timed_out; ++i) {
    error_code ignored;
    exchange.socket.close(ignored);
    const auto left = exchange.deadline.expiry() - std::chrono::steady_clock::now();
    exchange.pause.expires_after(std::max<asio::steady_timer::duration>(
        left / static_cast<int>(addresses.size() - i), connect_share_min));
    const auto first = co_await (exchange.socket.async_connect(addresses[i], as_result) ||
                                 exchange.pause.async_wait(as_result));
    error = first.index() == 0 ? std::get<0>(std::get<0>(first)) : asio::error::timed_out;
  }
  if (error) co_return failure(exchange, "connect", error);
  co_return base::Result<>();
}

http::request<http::string_body> to_message(const HttpRequest& request, const Credentials& credentials) {
  http::request<http::string_body> message{http::string_to_verb(request.method), request.target, 11};
  message.set(http::field::host, request.endpoint.host_field());
  message.set(http::field::user_agent, "spoor");
  if (!request.authorization.empty()) {
    message.set(http::field::authorization, request.authorization);
  } else if (credentials.sends_token_to(request.endpoint)) {
    message.set(http::field::authorization, "Bearer " + credentials.token);
  }
  if (!request.content_type.empty()) message.set(http::field::content_type, request.content_type);
  message.body() = request.body;
  message.prepare_payload();
  return message;
}

// The share of one response in the memory of all.
class Held {
 public:
  explicit Held(std::uint64_t& all) : all_(all) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { all_ -= bytes_; }

  void set(std::uint64_t bytes) {
    all_ += bytes - bytes_;
    bytes_ = bytes;
  }

 private:
  std::uint64_t& all_;
  std::uint64_t bytes_ = 0;
};

error_code too_much_at_once() { return asio::error::no_buffer_space; }

// The result of one attempt.
struct Attempt {
  base::Result<HttpResponse> response;
  bool may_be_repeated = false;  // no response came, or one of 503
};

constexpr std::string_view token_withheld =
    "it requires a token, which is not sent to an address that only DNS or etcd names: list it in "
    "peers.static, use https with peers.tls.ca, or set peers.token_to_all";

// Replaces the body of a 401 response if no token was sent: the server does not know the reason.
std::string unsent_token_body(std::string_view reason) {
  return nlohmann::json{{"detail", reason}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

constexpr std::chrono::milliseconds first_pause{50};
constexpr std::chrono::milliseconds pause_max{2'000};

}  // namespace

class HttpTransport::Client {
 public:
  explicit Client(Options options) : options_(std::move(options)), tls_(options_.credentials.tls) {}

  void exchange(std::span<const HttpRequest> requests, const OnResponse& on_response) {
    const bool is_bounded = options_.total_timeout.count() > 0;
    ends_at_ = is_bounded ? Clock::now() + options_.total_timeout : Clock::time_point::max();
    std::size_t next = 0;
    std::vector<bool> is_done(requests.size());
    const OnResponse take = [&](std::size_t index, base::Result<HttpResponse> response) {
      is_done[index] = true;
      on_response(index, std::move(response));
    };
    context_.restart();
    const std::stop_callback stopping(options_.stop, [this] { context_.stop(); });
    for (std::size_t i = 0; i < std::min(requests.size(), options_.concurrent_max); ++i) {
      asio::co_spawn(context_, work(requests, next, take), [](const std::exception_ptr& failure) {
        if (failure) std::rethrow_exception(failure);
      });
    }
    context_.run();
    // After a stop, the operations that wait are destroyed with the context.
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (!is_done[i])
        on_response(i, base::Error(std::make_error_code(std::errc::operation_canceled), "stopping"));
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Sends requests from the common list, one after the other, until none is left.
  asio::awaitable<void> work(std::span<const HttpRequest> requests, std::size_t& next,
                             const OnResponse& on_response) {
    while (next < requests.size()) {
      const std::size_t index = next++;
      const HttpRequest& request = requests[index];
      auto response = co_await exchange_one(request);
      on_response(index, std::move(response));
    }
  }

  std::chrono::milliseconds time_left() const {
    if (ends_at_ == Clock::time_point::max()) return options_.timeout;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(ends_at_ - Clock::now());
    return std::clamp(left, std::chrono::milliseconds{0}, options_.timeout);
  }

  asio::awaitable<base::Result<HttpResponse>> exchange_one(const HttpRequest& request) {
    const auto exchange = std::make_shared<Exchange>(co_await asio::this_coro::executor);
    exchange->deadline.expires_after(time_left());
    // Does not own the exchange: at its end, the timer must not keep the event loop running.
    exchange->deadline.async_wait([weak = std::weak_ptr(exchange)](const error_code& error) {
      if (const auto expired = weak.lock(); expired && !error) expired->expire();
    });
    for (unsigned number = 1;; ++number) {
      auto attempt = co_await try_once(*exchange, request);
      const bool is_over = !attempt.may_be_repeated || number >= options_.attempts_max || exchange->timed_out;
      if (is_over) co_return std::move(attempt.response);
      exchange->pause.expires_after(pause_after(number));
      co_await exchange->pause.async_wait(as_result);
      if (exchange->timed_out) co_return std::move(attempt.response);  // more precise than a timeout
    }
  }

  // Doubles after each attempt, with a jitter of 0.5 to 1.5, so that many clients do not retry at the same
  // moment.
  std::chrono::milliseconds pause_after(unsigned attempts) {
    const auto nominal = std::min(first_pause * (1U << std::min(attempts - 1, 16U)), pause_max);
    std::uniform_real_distribution<double> jitter(0.5, 1.5);
    return std::chrono::duration_cast<std::chrono::milliseconds>(nominal * jitter(random_));
  }

  asio::awaitable<Attempt> try_once(Exchange& exchange, const HttpRequest& request) {
    bool is_reused = take_idle(request.endpoint, exchange);
    for (;; is_reused = false) {
      if (!is_reused) {
        exchange.tls.reset();
        auto connected = co_await open(exchange, request.endpoint);
        if (connected && request.endpoint.is_tls) connected = co_await secure(exchange, request.endpoint);
        if (!connected) co_return Attempt{connected.error(), !exchange.timed_out};
      }
      auto sending =
          exchange.tls ? send(exchange, *exchange.tls, request) : send(exchange, exchange.socket, request);
      auto attempt = co_await std::move(sending);
      // The other end may have closed the idle connection: this does not count as an attempt.
      const bool was_stale = is_reused && !attempt.response && attempt.may_be_repeated;
      if (!was_stale) co_return std::move(attempt);
    }
  }

  // Starts TLS on the connection. Fails if the certificate is not that of the host.
  asio::awaitable<base::Result<>> secure(Exchange& exchange, const base::Endpoint& endpoint) {
    if (!tls_) {
      auto made = make_tls_client({});
      if (!made) co_return made.error();
      tls_ = *std::move(made);
    }
    exchange.tls = std::make_unique<TlsStream>(std::move(exchange.socket), *tls_);
    auto& tls = *exchange.tls;
    const std::string& name = endpoint.tls_name.empty() ? endpoint.host : endpoint.tls_name;
    if (!base::is_ip_address(name)) {  // like the macro SSL_set_tlsext_host_name
      SSL_ctrl(tls.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
               const_cast<char*>(name.c_str()));
    }
    error_code error;
    const auto verify = [by_name = asio::ssl::host_name_verification(name)](
                            bool preverified, asio::ssl::verify_context& context) {
      const bool is_good = by_name(preverified, context);
      // The server then gets an alert on the certificate.
      if (preverified && !is_good)
        X509_STORE_CTX_set_error(context.native_handle(), X509_V_ERR_HOSTNAME_MISMATCH);
      return is_good;
    };
    tls.set_verify_callback(verify, error);
    if (!error) error = std::get<0>(co_await tls.async_handshake(asio::ssl::stream_base::client, as_result));
    if (!error) co_return base::Result<>{};
    auto failed = failure(exchange, "agree on TLS", error);
    if (!exchange.timed_out)
      failed.message = "cannot agree on TLS: " + tls_failure(tls.native_handle(), error);
    co_return failed;
  }

  template <class Stream>
  asio::awaitable<Attempt> send(Exchange& exchange, Stream& stream, const HttpRequest& request) {
    const auto message = to_message(request, options_.credentials);
    const auto [write_error, written] = co_await http::async_write(stream, message, as_result);
    // Read the response even if the write failed: a server may respond and close before it has read
    // everything.
    beast::flat_buffer buffer(buffer_bytes_max);
    std::optional<http::response_parser<http::string_body>> whole;
    error_code read_error;
    do {  // the final response may follow interim ones (RFC 9110, 15.2)
      whole.emplace();
      whole->header_limit(header_bytes_max);
      whole->body_limit(options_.body_bytes_max);
      read_error = co_await read(stream, buffer, *whole);
    } while (!read_error && whole->get().result_int() < 200);
    auto& parser = *whole;
    if (read_error) {
      // After too_much_at_once() a retry can succeed, once other responses are complete.
      const bool is_unanswered =
          !exchange.timed_out && (!parser.got_some() || read_error == too_much_at_once());
      const bool unsent = static_cast<bool>(write_error);
      const char* const what = unsent ? "send the request" : "read the answer";
      if (read_error == http::error::body_limit) co_return Attempt{too_large(), false};
      auto error = failure(exchange, what, unsent ? write_error : read_error);
      if (exchange.tls && is_certificate_refused(read_error)) {
        error.message = "cannot agree on TLS: " + tls_failure(exchange.tls->native_handle(), read_error);
      }
      co_return Attempt{std::move(error), is_unanswered};
    }
    auto& answer = parser.get();
    // A server that has not read the whole request can't have done it.
    if (write_error && answer.result_int() < 300)
      co_return Attempt{failure(exchange, "send the request", write_error), false};
    const bool stays_open = !write_error && answer.keep_alive() && buffer.size() == 0;
    HttpResponse response;
    if (exchange.tls) {
      if (auto names = certificate_names(exchange.tls->native_handle())) {
        response.certificate_names = *std::move(names);
        response.is_own_authority = options_.credentials.has_own_ca;
      }
    }
    if (stays_open) keep_idle(request.endpoint, exchange);
    response.status = answer.result_int();
    response.content_type = answer[http::field::content_type];
    response.date = answer[http::field::date];
    response.retry_after = answer[http::field::retry_after];
    response.body = std::move(answer.body());
    const Credentials& ours = options_.credentials;
    const bool is_withheld = !ours.token.empty() && !ours.sends_token_to(request.endpoint);
    if (answer.result() == http::status::unauthorized && (is_withheld || !ours.absence.empty()))
      response.body = unsent_token_body(is_withheld ? token_withheld : ours.absence);
    const bool is_unavailable = answer.result() == http::status::service_unavailable;
    co_return Attempt{std::move(response), is_unavailable};
  }

  base::Error too_large() const {
    return {std::make_error_code(std::errc::message_size),
            fmt::format("the response is larger than the limit of {} bytes", options_.body_bytes_max)};
  }

  // Reads the header first: if it declares the length of the body, all of it counts as held from then on. The
  // body is read in parts, as it arrives.
  template <class Stream>
  asio::awaitable<error_code> read(Stream& stream, beast::flat_buffer& buffer,
                                   http::response_parser<http::string_body>& parser) {
    error_code error;
    for (std::size_t header_bytes = 0; !error && !parser.is_header_done();) {
      const auto [failed, bytes] = co_await http::async_read_some(stream, buffer, parser, as_result);
      error = failed;
      header_bytes += bytes;
      // Beast bounds only what it has not parsed yet.
      if (!error && header_bytes > header_bytes_max) error = http::error::header_limit;
    }
    const std::uint64_t declared = error ? 0 : parser.content_length().value_or(0);
    Held held(held_bytes_);
    for (;;) {
      const std::uint64_t received = parser.get().body().size();
      held.set(std::max(declared, received));
      if (!error && held_bytes_ > options_.bodies_bytes_max) error = too_much_at_once();
      if (error || parser.is_done()) co_return error;
      const auto [failed_read, bytes] = co_await http::async_read_some(stream, buffer, parser, as_result);
      error = failed_read;
    }
  }

  bool take_idle(const base::Endpoint& endpoint, Exchange& exchange) {
    const auto found = idle_.find(endpoint.to_string());
    if (found == idle_.end()) return false;
    static_cast<Connection&>(exchange) = std::move(found->second);
    idle_.erase(found);
    return true;
  }

  void keep_idle(const base::Endpoint& endpoint, Exchange& exchange) {
    if (idle_.size() >= options_.idle_max) return;
    idle_.emplace(endpoint.to_string(), static_cast<Connection&&>(exchange));
  }

  const Options options_;
  std::shared_ptr<asio::ssl::context> tls_;
  std::uint64_t held_bytes_ = 0;
  asio::io_context context_{1};
  std::multimap<std::string, Connection> idle_;
  Clock::time_point ends_at_;
  std::minstd_rand random_{std::random_device{}()};
};

HttpTransport::HttpTransport(Options options) : client_(std::make_unique<Client>(std::move(options))) {}
HttpTransport::~HttpTransport() = default;

void HttpTransport::exchange(std::span<const HttpRequest> requests, const OnResponse& on_response) {
  client_->exchange(requests, on_response);
}

std::unique_ptr<Transport> make_http_transport(HttpTransport::Options options) {
  return std::make_unique<HttpTransport>(std::move(options));
}

}  // namespace spoor::peer
