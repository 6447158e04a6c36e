#include "daemon/http_session.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/url.hpp>
#include <ctime>
#include <iterator>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "daemon/problem.h"
#include "daemon/tls.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Socket = HttpSession::Socket;
using Parser = http::request_parser<http::string_body>;

// Errors come back as values: a client that hangs up is not exceptional.
constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
using Io = std::tuple<error_code, std::size_t>;

constexpr std::size_t first_read_bytes = 4096;
constexpr std::size_t idle_buffer_bytes_max = std::size_t{16} << 10U;
constexpr std::ptrdiff_t fields_max = 100;  // of a header and a trailer together
constexpr std::size_t body_read_bytes = std::size_t{64} << 10U;
constexpr std::size_t small_body_bytes = std::size_t{16} << 10U;  // never refused for want of memory
constexpr std::size_t body_padding_bytes = 64;                    // spare room that JSON parsers like to have
constexpr std::size_t write_bytes = std::size_t{256} << 10U;      // in the time for a part of an answer
constexpr std::uint64_t answers_bytes_max = std::uint64_t{64} << 20U;  // of all that are being written
constexpr std::size_t joined_bytes_max = std::size_t{16} << 10U;
constexpr std::size_t lingering_bytes_max = std::size_t{1} << 20U;
constexpr std::chrono::milliseconds lingering_max{2'000};

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

// What two parties could read in two ways, so that one sees a request where the other sees a body
// (RFC 9112, sections 3.2 and 6.1 to 6.3).
std::optional<Problem> ambiguity_of(const http::request_header<>& header) {
  const auto bad = [](const char* what) { return Problem{400, "invalid_request", what}; };
  const bool is_http11 = header.version() == 11;
  const auto hosts = header.count(http::field::host);
  if (hosts > 1 || (is_http11 && hosts == 0)) return bad("exactly one Host is needed in the header");
  const auto encodings = header.count(http::field::transfer_encoding);
  const auto lengths = header.count(http::field::content_length);
  if (encodings > 0) {
    if (!is_http11) return bad("HTTP/1.0 knows no Transfer-Encoding");
    if (lengths > 0) return bad("Content-Length and Transfer-Encoding contradict each other; send one");
    if (encodings > 1 || !boost::beast::iequals(header[http::field::transfer_encoding], "chunked")) {
      return bad("the only Transfer-Encoding that is known here is 'chunked'");
    }
  }
  if (lengths > 1) return bad("Content-Length was sent more than once");
  if (lengths == 1) {
    const auto text = view(header[http::field::content_length]);
    const bool is_number =
        !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number) return bad("Content-Length is no number");
  }
  return std::nullopt;
}

// Beast bounds what it gets at one time, but not how many fields it makes of it.
bool has_too_many_fields(const http::request_header<>& header) {
  return std::distance(header.begin(), header.end()) > fields_max;
}

// The request as the API sees it, without its body; nothing where its target is no path, or
// names a parameter twice.
std::optional<HttpRequest> to_request(const http::request_header<>& header) {
  HttpRequest request;
  const auto target = view(header.target());
  const bool is_plain = target.starts_with('/') && target.find_first_of("%?#") == std::string_view::npos;
  if (is_plain || target == "*") {
    request.path = target;
  } else {
    auto url = boost::urls::parse_origin_form(target);
    if (!url) url = boost::urls::parse_uri(target);  // the absolute form, as sent to proxies
    if (!url) return std::nullopt;
    request.path = url->path();
    for (const auto& parameter : url->params()) {
      if (!request.query.emplace(parameter.key, parameter.value).second) return std::nullopt;
    }
  }
  request.method = view(header.method_string());
  request.content_type = view(header[http::field::content_type]);
  request.content_encoding = view(header[http::field::content_encoding]);
  request.authorization = view(header[http::field::authorization]);
  return request;
}

// What to tell a client whose request could not be read; nothing where it has gone.
std::optional<Problem> problem_of(const error_code& error, bool timed_out) {
  if (timed_out) return Problem{408, "timeout", "the request did not arrive in time"};
  // Beast bounds neither a chunk's extension nor the trailer; the buffer does.
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return Problem{431, "headers_too_large", "the header of the request is too large"};
  }
  const bool is_gone = error == http::error::end_of_stream || error == http::error::partial_message ||
                       error.category() != make_error_code(http::error::bad_method).category();
  if (is_gone) return std::nullopt;
  return Problem{400, "invalid_request", fmt::format("this is not HTTP/1.1: {}", error.message())};
}

Problem too_large(std::uint64_t body_bytes_max) {
  return {413, "body_too_large",
          fmt::format("the body is over limits.max_body ({} bytes); send it in parts", body_bytes_max)};
}

// In functions of their own: g++ 12 destroys what a coroutine makes with braces in an expression twice.
Problem no_path() {
  return {400, "invalid_request", "the target of the request is no path, or names a parameter twice"};
}

Problem too_many_connections() {
  return {503, "overloaded", "too many connections (limits.max_connections); try again"};
}

Problem too_many_answers() {
  return {503, "overloaded", "too many large answers wait for their clients to read them; try again"};
}

Problem too_much_at_once() {
  return {503, "overloaded",
          "the requests under way take all the memory there is for bodies (limits.max_bodies); try again"};
}

// RFC 9110, section 6.6.1. Made once a second.
const std::string& date_of(HttpSessions& sessions) {
  const std::time_t now = std::time(nullptr);
  if (now != sessions.date_made_at) {
    sessions.date_made_at = now;
    sessions.date = fmt::format("{:%a, %d %b %Y %H:%M:%S GMT}", fmt::gmtime(now));
  }
  return sessions.date;
}

std::string head_of(const HttpResponse& response, bool keep_alive, HttpSessions& sessions) {
  const auto reason = http::obsolete_reason(http::int_to_status(response.status));
  std::string head;
  head.reserve(256 + std::min(response.body.size(), joined_bytes_max));
  const auto out = std::back_inserter(head);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\nServer: spoord\r\nDate: {}\r\n", response.status, view(reason),
                 date_of(sessions));
  constexpr unsigned no_content = 204;
  if (response.status != no_content) {
    if (!response.content_type.empty()) fmt::format_to(out, "Content-Type: {}\r\n", response.content_type);
    fmt::format_to(out, "Content-Length: {}\r\n", response.body.size());
  }
  for (const auto& [name, value] : response.headers) fmt::format_to(out, "{}: {}\r\n", name, value);
  fmt::format_to(out, "Connection: {}\r\n\r\n", keep_alive ? "keep-alive" : "close");
  return head;
}

}  // namespace

// The connection, plain or not, and what came of it that nobody has taken yet.
class HttpSession::Stream {
 public:
  Stream(Socket the_socket, std::shared_ptr<asio::ssl::context> context, std::size_t buffer_bytes_max)
      : buffer(buffer_bytes_max), socket_(std::move(the_socket)), context_(std::move(context)) {
    if (context_) tls_.emplace(socket_, *context_);
  }

  bool is_plain() const { return !tls_; }

  asio::awaitable<Io> read_some(asio::mutable_buffer target) {
    if (tls_) return tls_->async_read_some(target, as_result);
    return socket_.async_read_some(target, as_result);
  }

  asio::awaitable<Io> write_some(asio::const_buffer source) {
    if (tls_) return tls_->async_write_some(source, as_result);
    return socket_.async_write_some(source, as_result);
  }

  // Past TLS: for what nobody will look at.
  asio::awaitable<Io> read_raw(asio::mutable_buffer target) {
    return socket_.async_read_some(target, as_result);
  }

  asio::awaitable<std::tuple<error_code>> shake_hands() {
    return tls_->async_handshake(asio::ssl::stream_base::server, as_result);
  }
  asio::awaitable<std::tuple<error_code>> close_tls() { return tls_->async_shutdown(as_result); }
  SSL* native_tls() const { return const_cast<asio::ssl::stream<Socket&>&>(*tls_).native_handle(); }

  bool has_input() const {
    error_code ignored;
    const bool is_decoded = tls_ && SSL_pending(const_cast<SSL*>(native_tls())) > 0;
    return buffer.size() > 0 || is_decoded || socket_.available(ignored) > 0;
  }

  bool end_sending() {
    error_code error;
    socket_.shutdown(Socket::shutdown_send, error);
    return !error;
  }

  void cancel() {
    error_code ignored;
    socket_.cancel(ignored);
  }

  // Reads on at its end. The error `buffer_overflow` where there is too much in it already.
  asio::awaitable<error_code> fill(std::size_t bytes) {
    const std::size_t room = std::min(buffer.max_size() - buffer.size(), bytes);
    if (room == 0) co_return http::error::buffer_overflow;
    const auto [error, size] = co_await read_some(buffer.prepare(room));
    buffer.commit(size);
    co_return error;
  }

  boost::beast::flat_buffer buffer;  // bounded

 private:
  Socket socket_;
  std::shared_ptr<asio::ssl::context> context_;
  std::optional<asio::ssl::stream<Socket&>> tls_;
};

// A request as it comes in, and its share of what all bodies take.
struct HttpSession::Incoming {
  explicit Incoming(HttpSessions& the_sessions) : sessions(the_sessions) {
    parser.header_limit(sessions.limits.header_bytes_max);
    parser.body_limit(boost::none);  // not before it is clear who sends it
  }
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;
  ~Incoming() {
    sessions.body_bytes_held -= held;
    sessions.answer_bytes_held -= answer_held;
  }

  // Whether there is room for an answer of so many bytes beside those of others. One alone may be of any
  // size.
  bool hold_answer(std::uint64_t bytes) {
    const std::uint64_t others = sessions.answer_bytes_held;
    if (bytes > small_body_bytes && others > 0 && others + bytes > answers_bytes_max) return false;
    sessions.answer_bytes_held += bytes;
    answer_held += bytes;
    return true;
  }

  // Whether there is room for a body of so many bytes.
  bool hold(std::uint64_t bytes) {
    const std::uint64_t others = sessions.body_bytes_held - held;
    if (bytes > small_body_bytes && others + bytes > sessions.limits.bodies_bytes_max) return false;
    sessions.body_bytes_held = others + bytes;
    held = bytes;
    return true;
  }

  HttpSessions& sessions;
  Parser parser;
  HttpRequest request;
  std::uint64_t held = 0;
  std::uint64_t answer_held = 0;
};

HttpSession::HttpSession(std::shared_ptr<HttpSessions> sessions, Socket socket, Caller caller,
                         std::shared_ptr<asio::ssl::context> tls)
    : sessions_(std::move(sessions)),
      caller_(std::move(caller)),
      stream_(std::make_unique<Stream>(std::move(socket), std::move(tls),
                                       sessions_->limits.header_bytes_max + body_read_bytes)) {
  sessions_->all.insert(this);
}

HttpSession::~HttpSession() {
  sessions_->all.erase(this);
  if (sessions_->stopping && sessions_->all.empty() && sessions_->on_last_end) sessions_->on_last_end();
}

asio::awaitable<void> HttpSession::run() {
  bool go_on = true;
  if (!stream_->is_plain()) go_on = co_await shake_hands();
  while (go_on) go_on = co_await serve_one();
  co_await end();
}

asio::awaitable<void> HttpSession::refuse() {
  if (!stream_->is_plain()) co_return;  // a handshake would cost more than what is saved
  const Problem problem = too_many_connections();
  co_await answer_last(problem);
  co_await end();
}

void HttpSession::stop() {
  if (!idle_) return;
  if (is_new_ || has_input()) {
    arm(sessions_->limits.first_max);
  } else {
    cancel();
  }
}

bool HttpSession::has_input() const { return stream_->has_input(); }

void HttpSession::cancel() {
  stream_->cancel();
  cancelled_ = true;
}

void HttpSession::expire(Clock::time_point now) {
  if (now < deadline_) return;
  timed_out_ = true;
  cancel();
}

void HttpSession::arm(std::chrono::milliseconds time) { deadline_ = Clock::now() + time; }

asio::awaitable<bool> HttpSession::shake_hands() {
  arm(sessions_->limits.request_max);
  waiting_since_ = Clock::now();
  const auto [error] = co_await stream_->shake_hands();
  if (error) co_return false;
  if (auto names = certificate_names(stream_->native_tls())) {
    caller_.has_certificate = true;
    caller_.certificate_names = *std::move(names);
  }
  co_return true;
}

// Reads and answers one request; false when the connection is to end.
asio::awaitable<bool> HttpSession::serve_one() {
  Incoming incoming(*sessions_);
  const bool has_header = co_await read_header(incoming);
  if (!has_header) co_return false;
  const auto& header = incoming.parser.get();
  const bool is_head = header.method() == http::verb::head;
  const bool keep_alive = header.keep_alive();
  if (is_head) incoming.request.method = "GET";
  if (sessions_->service.admit) {
    if (const auto refused = sessions_->service.admit(incoming.request)) {
      const bool goes_on = co_await answer_early(incoming, *refused);
      co_return goes_on;
    }
  }
  const bool has_body = co_await read_body(incoming);
  if (!has_body) co_return false;
  deadline_ = Clock::time_point::max();
  HttpResponse response = co_await sessions_->service.handle(incoming.request);
  incoming.request.body = std::string();
  incoming.hold(0);
  if (!incoming.hold_answer(response.body.size())) {
    const Problem problem = too_many_answers();
    response = to_response(problem);
  }
  const bool goes_on = keep_alive && !sessions_->stopping;
  const bool is_sent = co_await answer(response, goes_on, is_head);
  // A stop may have come since the client was told that it can go on.
  co_return is_sent&& goes_on && (!sessions_->stopping || has_input());
}

asio::awaitable<bool> HttpSession::read_header(Incoming& incoming) {
  auto& buffer = stream_->buffer;
  auto& parser = incoming.parser;
  idle_ = buffer.size() == 0;
  cancelled_ = false;
  timed_out_ = false;
  waiting_since_ = Clock::now();
  // One large request must not cost memory for as long as the connection lasts.
  if (idle_ && buffer.capacity() > idle_buffer_bytes_max) buffer.shrink_to_fit();
  const auto idle_max = sessions_->stopping ? sessions_->limits.first_max : sessions_->limits.idle_max;
  arm(idle_ ? idle_max : sessions_->limits.request_max);
  error_code error;
  std::size_t header_bytes = 0;
  while (!parser.is_header_done() && !error) {
    if (buffer.size() > 0) {
      const std::size_t taken = parser.put(buffer.data(), error);
      buffer.consume(taken);
      header_bytes += taken;
      if (error == http::error::need_more) error = {};
      const bool is_too_much =
          header_bytes > sessions_->limits.header_bytes_max || has_too_many_fields(parser.get());
      if (!error && is_too_much) error = http::error::header_limit;
      if (error || parser.is_header_done()) break;
    }
    error = co_await stream_->fill(first_read_bytes);
    if (error && idle_) co_return false;
    if (std::exchange(idle_, false)) arm(sessions_->limits.request_max);
    is_new_ = false;
  }
  waiting_since_.reset();
  if (error) {
    const auto problem = problem_of(error, timed_out_);
    if (problem) co_await answer_last(*problem);
    co_return false;
  }
  if (const auto problem = ambiguity_of(parser.get())) {
    co_await answer_last(*problem);
    co_return false;
  }
  auto request = to_request(parser.get());
  if (!request) {
    const Problem problem = no_path();
    co_await answer_last(problem);
    co_return false;
  }
  incoming.request = *std::move(request);
  incoming.request.caller = caller_;
  incoming.request.has_body = parser.chunked() || parser.content_length().value_or(0) > 0;
  incoming.request.has_length = parser.content_length().has_value() || parser.chunked();
  co_return true;
}

asio::awaitable<bool> HttpSession::read_body(Incoming& incoming) {
  auto& parser = incoming.parser;
  const std::uint64_t length = parser.content_length().value_or(0);
  if (length == 0 && !parser.chunked()) co_return true;
  if (length > sessions_->limits.body_bytes_max) {
    const Problem problem = too_large(sessions_->limits.body_bytes_max);
    co_await answer_last(problem);
    co_return false;
  }
  const bool is_awaited = boost::beast::iequals(parser.get()[http::field::expect], "100-continue");
  if (is_awaited && stream_->buffer.size() == 0) {
    constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    const auto [error, size] = co_await stream_->write_some(asio::buffer(go_on));
    if (error || size != go_on.size()) co_return false;
  }
  std::optional<Broken> broken;
  if (parser.chunked()) {
    broken = co_await read_chunks(incoming);
  } else {
    broken = co_await read_declared(incoming, length);
  }
  if (!broken) co_return true;
  if (broken->problem) co_await answer_last(*broken->problem);
  co_return false;
}

// Straight to where it is needed: a large body is neither copied nor read in small pieces.
asio::awaitable<std::optional<HttpSession::Broken>> HttpSession::read_declared(Incoming& incoming,
                                                                               std::uint64_t length) {
  auto& body = incoming.request.body;
  auto& buffer = stream_->buffer;
  const auto total = static_cast<std::size_t>(length);
  std::size_t have = std::min(buffer.size(), total);
  const auto make_room = [&](std::size_t bytes) {
    const std::size_t room = std::min(bytes, total);
    if (!incoming.hold(room)) return false;
    body.reserve(room + body_padding_bytes);
    body.resize(room);
    return true;
  };
  if (!make_room(std::max(have, body_read_bytes))) co_return broken_by(too_much_at_once());
  asio::buffer_copy(asio::buffer(body), buffer.data(), have);
  buffer.consume(have);
  while (have < total) {
    // Only what really comes takes memory.
    if (have == body.size() && !make_room(2 * have)) co_return broken_by(too_much_at_once());
    const auto [error, size] = co_await stream_->read_some(asio::buffer(body) + have);
    if (error) co_return broken_by(problem_of(error, timed_out_));
    have += size;
  }
  co_return std::nullopt;
}

asio::awaitable<std::optional<HttpSession::Broken>> HttpSession::read_chunks(Incoming& incoming) {
  auto& parser = incoming.parser;
  auto& buffer = stream_->buffer;
  const std::uint64_t most = sessions_->limits.body_bytes_max;
  parser.body_limit(most);
  while (!parser.is_done()) {
    error_code error;
    std::size_t taken = 0;  // a step at a time: there may be more in the buffer than one takes
    if (buffer.size() > 0) taken = parser.put(buffer.data(), error);
    buffer.consume(taken);
    const bool needs_more = taken == 0 || error == http::error::need_more;
    if (error == http::error::need_more) error = {};
    if (!error && has_too_many_fields(parser.get())) error = http::error::header_limit;
    if (error == http::error::body_limit) co_return broken_by(too_large(most));
    if (!error && !incoming.hold(parser.get().body().size())) co_return broken_by(too_much_at_once());
    if (!error && !parser.is_done() && needs_more) error = co_await stream_->fill(body_read_bytes);
    if (error) co_return broken_by(problem_of(error, timed_out_));
  }
  incoming.request.body = std::move(parser.get().body());
  co_return std::nullopt;
}

asio::awaitable<bool> HttpSession::answer(const HttpResponse& response, bool keep_alive, bool head_only) {
  std::string head = head_of(response, keep_alive, *sessions_);
  std::string_view rest = head_only ? std::string_view() : std::string_view(response.body);
  if (rest.size() <= joined_bytes_max) head += std::exchange(rest, {});
  for (std::string_view part : {std::string_view(head), rest}) {
    std::size_t since_armed = write_bytes;
    while (!part.empty()) {
      if (since_armed >= write_bytes) {
        arm(sessions_->limits.request_max);
        since_armed = 0;
      }
      const auto [error, size] =
          co_await stream_->write_some(asio::buffer(part.data(), std::min(part.size(), write_bytes)));
      if (error) co_return false;
      part.remove_prefix(size);
      since_armed += size;
    }
  }
  co_return true;
}

// Before the body was read. Where all of it is there already, the connection can go on.
asio::awaitable<bool> HttpSession::answer_early(Incoming& incoming, const HttpResponse& response) {
  auto& buffer = stream_->buffer;
  const auto length = incoming.parser.content_length().value_or(0);
  if (incoming.parser.chunked() || length > buffer.size()) {
    co_await answer_last(response);
    co_return false;
  }
  buffer.consume(static_cast<std::size_t>(length));
  const auto& header = incoming.parser.get();
  const bool goes_on = header.keep_alive() && !sessions_->stopping;
  const bool is_sent = co_await answer(response, goes_on, header.method() == http::verb::head);
  co_return is_sent&& goes_on;
}

asio::awaitable<void> HttpSession::answer_last(const Problem& problem) {
  ++sessions_->unread[problem.code];
  const HttpResponse response = to_response(problem);
  co_await answer_last(response);
}

asio::awaitable<void> HttpSession::answer_last(const HttpResponse& response) {
  has_unread_ = true;
  cancelled_ = false;
  co_await answer(response, false, false);
}

// Lets the client read its answer: closing with unread bytes would reset the connection.
asio::awaitable<void> HttpSession::end() {
  cancelled_ = false;
  arm(lingering_max);
  if (!stream_->is_plain()) co_await stream_->close_tls();
  if (!has_unread_ || !stream_->end_sending()) co_return;
  for (std::size_t total = 0; total < lingering_bytes_max && !cancelled_;) {
    stream_->buffer.clear();
    const auto [error, size] = co_await stream_->read_raw(stream_->buffer.prepare(first_read_bytes));
    if (error) break;
    total += size;
  }
}

}  // namespace spoor::daemon
