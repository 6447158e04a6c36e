#include "daemon/http/http_session.h"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>
#include <memory_resource>
#include <string_view>
#include <tuple>

#include "daemon/http/http_header.h"
#include "daemon/http/http_stream.h"
#include "daemon/http/tls.h"
#include "peer/http/certificate_names.h"
#include "peer/http/credentials.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Parser = http::request_parser<http::string_body, HttpFields::allocator_type>;

constexpr std::size_t first_read_bytes = 4096;
constexpr std::size_t idle_buffer_bytes_max = std::size_t{16} << 10U;
constexpr std::size_t body_read_bytes = std::size_t{64} << 10U;
constexpr std::size_t small_body_bytes = std::size_t{16} << 10U;  // never refused because of bodies_bytes_max
constexpr std::size_t body_padding_bytes = 64;                    // spare capacity for the JSON parser
constexpr std::size_t write_bytes = std::size_t{256} << 10U;      // to be written within request_max
constexpr std::uint64_t answers_bytes_max = std::uint64_t{64} << 20U;  // of all responses being written
constexpr std::size_t kept_bytes_max = 2048;      // capacity of each string kept for the next request
constexpr std::size_t fields_bytes_usual = 1024;  // memory of a usual parsed header
constexpr std::size_t joined_bytes_max = std::size_t{16} << 10U;
constexpr std::size_t lingering_bytes_max = std::size_t{1} << 20U;
constexpr std::chrono::milliseconds lingering_max{2'000};

// The problem for a request that could not be read; std::nullopt if the client has disconnected.
std::optional<Problem> problem_of(const error_code& error, bool timed_out) {
  if (timed_out) return Problem{408, "timeout", "the request did not arrive in time"};
  // Beast bounds neither a chunk's extension nor the trailer; the buffer does.
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return Problem{431, "headers_too_large", "the header of the request is too large"};
  }
  const bool is_gone = error == http::error::end_of_stream || error == http::error::partial_message ||
                       error.category() != make_error_code(http::error::bad_method).category();
  if (is_gone) return std::nullopt;
  return Problem{400, "invalid_request",
                 fmt::format("the request is not valid HTTP/1.1: {}", error.message())};
}

Problem too_large(std::uint64_t body_bytes_max) {
  return {413, "body_too_large",
          fmt::format("the body is over limits.max_body ({} bytes); send it in parts", body_bytes_max)};
}

Problem too_many_connections() {
  return {503, "overloaded", "too many connections (limits.max_connections); try again"};
}

Problem too_many_answers() {
  return {503, "overloaded", "too many large responses wait for their clients to read them; try again"};
}

Problem too_much_at_once() {
  return {503, "overloaded", "open requests use all of the memory for bodies (limits.max_bodies); try again"};
}

// The fields Server and Date (RFC 9110, section 6.6.1), formatted once a second.
const std::string& server_fields(HttpSessions& sessions) {
  const std::time_t now = std::time(nullptr);
  if (now != sessions.server_fields_made_at) {
    sessions.server_fields_made_at = now;
    sessions.server_fields =
        fmt::format("Server: spoord\r\nDate: {:%a, %d %b %Y %H:%M:%S GMT}\r\n", fmt::gmtime(now));
  }
  return sessions.server_fields;
}

// Appends; fmt::format() would cost as much as parsing a small request.
void write_head(const HttpResponse& response, bool keep_alive, HttpSessions& sessions, std::string& head) {
  head.append("HTTP/1.1 ").append(fmt::format_int(response.status).c_str()).append(" ");
  head.append(reason_phrase(response.status)).append("\r\n").append(server_fields(sessions));
  constexpr unsigned no_content = 204;
  constexpr unsigned not_modified = 304;
  if (response.status != no_content && response.status != not_modified) {
    if (!response.content_type.empty())
      head.append("Content-Type: ").append(response.content_type).append("\r\n");
    head.append("Content-Length: ").append(fmt::format_int(response.content().size()).c_str()).append("\r\n");
  }
  for (const auto& [name, value] : response.headers)
    head.append(name).append(": ").append(value).append("\r\n");
  head.append(keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n");
}

void empty(std::string& text) {
  text.clear();
  if (text.capacity() > kept_bytes_max) text.shrink_to_fit();
}

}  // namespace

// The current request and its response, and their share of the memory limits. Its memory is reused by the
// next request; unusually large buffers are freed.
class HttpSession::Exchange {
 public:
  Exchange(HttpSessions& sessions, HttpPlace& place, Caller caller) : sessions_(sessions), place_(place) {
    request.caller = std::move(caller);
    request.is_abandoned = [&place] { return place.is_client_gone(); };
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() { release(); }

  void begin() {
    release();
    parser_.emplace(std::piecewise_construct, std::make_tuple(), std::make_tuple(&fields_memory_));
    parser_->header_limit(sessions_.limits.header_bytes_max);
    parser_->body_limit(boost::none);  // the body is bounded after admission
  }

  // After begin().
  Parser& parser() { return *parser_; }

  // False until the header is complete.
  bool is_head() const {
    return parser_ && parser_->is_header_done() && parser_->get().method() == http::verb::head;
  }

  // Reserves memory for a response. Returns false if the responses of all connections would exceed
  // answers_bytes_max; a single response may have any size.
  bool hold_answer(std::uint64_t bytes) {
    const std::uint64_t others = sessions_.totals->answer_bytes.fetch_add(bytes);
    answer_held_ += bytes;
    if (bytes <= small_body_bytes || others == 0 || others + bytes <= answers_bytes_max) return true;
    release_answer();
    return false;
  }

  std::uint64_t body_bytes_max() const {
    return std::max(sessions_.limits.body_bytes_max, route_bytes_max());
  }

  // Changes the memory reserved for the body to `bytes`: see HttpPlace.
  bool hold(std::uint64_t bytes) {
    return place_.hold_body(bytes, small_body_bytes,
                            std::max(sessions_.limits.bodies_bytes_max, route_bytes_max()));
  }

  // Of a body for this route; 0: as the limits say.
  std::uint64_t route_bytes_max() const {
    const auto& of_route = sessions_.service.body_bytes_max;
    return of_route ? of_route(request) : 0;
  }

  // Releases the memory of the request and of its response.
  void release() {
    parser_.reset();
    fields_memory_.release();
    for (std::string* text :
         {&request.method, &request.path, &request.content_type, &request.content_encoding,
          &request.authorization, &request.host, &request.origin, &request.session, &request.accept_encoding,
          &request.if_none_match, &request.body, &head}) {
      empty(*text);
    }
    request.query.clear();
    hold(0);
    release_answer();
  }

  HttpRequest request;
  std::string head;  // of the response; includes the body if it is small

 private:
  void release_answer() { sessions_.totals->answer_bytes.fetch_sub(std::exchange(answer_held_, 0)); }

  HttpSessions& sessions_;
  HttpPlace& place_;
  std::array<std::byte, fields_bytes_usual> usual_fields_{};
  std::pmr::monotonic_buffer_resource fields_memory_{usual_fields_.data(), usual_fields_.size()};
  std::optional<Parser> parser_;
  std::uint64_t answer_held_ = 0;
};

HttpSession::HttpSession(std::shared_ptr<HttpSessions> sessions, std::unique_ptr<HttpPlace> place,
                         Socket socket, Caller caller, std::shared_ptr<asio::ssl::context> tls)
    : sessions_(std::move(sessions)),
      stream_(std::make_unique<HttpStream>(std::move(socket), std::move(tls),
                                           sessions_->limits.header_bytes_max + body_read_bytes)),
      place_(std::move(place)),
      exchange_(std::make_unique<Exchange>(*sessions_, *place_, std::move(caller))) {
  sessions_->all.insert(this);
}

HttpSession::~HttpSession() {
  sessions_->all.erase(this);
  if (sessions_->stopping && sessions_->all.empty()) sessions_->end();
}

asio::awaitable<void> HttpSession::run() {
  bool go_on = true;
  if (!stream_->is_plain()) go_on = co_await shake_hands();
  while (go_on) go_on = co_await serve_one();
  co_await end();
}

asio::awaitable<void> HttpSession::refuse() {
  if (!stream_->is_plain()) co_return;  // a handshake would cost more than the refusal saves
  co_await answer_last(too_many_connections());
  co_await end();
}

void HttpSession::stop() {
  if (!idle_) return;
  if (is_new_ || stream_->has_input()) {
    arm(sessions_->limits.first_max);
  } else {
    cancel();
  }
}

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
  place_->wait(Clock::now());
  idle_ = true;
  const auto [error] = co_await stream_->shake_hands();
  if (error) {
    ++sessions_->totals->handshakes_failed;
    // A peer with a wrong certificate is logged as a warning; port scanners and disconnected clients are not.
    const bool is_refused = peer::is_certificate_refused(error);
    const std::string line = fmt::format("no TLS with {}: {}", exchange_->request.caller.address,
                                         peer::tls_failure(stream_->native_tls(), error));
    const bool is_logged = is_refused && sessions_->log_limit.note(line, 1, Clock::now());
    spdlog::log(is_logged ? spdlog::level::warn : spdlog::level::debug, "{}", line);
    co_return false;
  }
  if (auto names = peer::client_names(stream_->native_tls())) {
    exchange_->request.caller.has_certificate = true;
    exchange_->request.caller.certificate_names = *std::move(names);
  }
  co_return true;
}

// Serves one request. Returns false if the connection is to be closed.
asio::awaitable<bool> HttpSession::serve_one() {
  Exchange& exchange = *exchange_;
  const bool has_header = co_await read_header();
  if (!has_header) co_return false;
  const auto& header = exchange.parser().get();
  const bool is_head = exchange.is_head();
  const bool keep_alive = header.keep_alive();
  if (is_head) exchange.request.method = "GET";
  if (sessions_->service.admit) {
    if (const auto refused = sessions_->service.admit(exchange.request)) {
      const bool goes_on = co_await answer_early(*refused);
      co_return goes_on;
    }
  }
  const bool has_body = co_await read_body();
  if (!has_body) co_return false;
  if (!place_->work()) co_return false;
  deadline_ = Clock::time_point::max();
  HttpResponse response = co_await sessions_->service.handle(exchange.request);
  empty(exchange.request.body);
  exchange.hold(0);
  if (response.is_counted && !exchange.hold_answer(response.body.size())) {
    response = to_response(too_many_answers());
  }
  const bool goes_on = keep_alive && !sessions_->stopping;
  const bool is_sent = co_await answer(response, goes_on, is_head);
  if (!is_sent || !goes_on) co_return false;
  // A stop may have begun after the response promised to keep the connection open.
  co_return !sessions_->stopping || stream_->has_input();
}

asio::awaitable<bool> HttpSession::read_header() {
  auto& buffer = stream_->buffer;
  exchange_->begin();
  Parser& parser = exchange_->parser();
  idle_ = buffer.size() == 0;
  cancelled_ = false;
  timed_out_ = false;
  // A large request must not occupy memory until the connection ends.
  if (idle_ && buffer.capacity() > idle_buffer_bytes_max) buffer.shrink_to_fit();
  const auto idle_max = sessions_->stopping ? sessions_->limits.first_max : sessions_->limits.idle_max;
  const auto now = Clock::now();
  place_->wait(now);
  deadline_ = now + (idle_ ? idle_max : sessions_->limits.request_max);
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
  if (error) co_return co_await fail(problem_of(error, timed_out_));
  auto problem = take_header(parser.get(), exchange_->request);
  if (problem) co_return co_await fail(std::move(problem));
  co_return true;
}

asio::awaitable<bool> HttpSession::read_body() {
  Parser& parser = exchange_->parser();
  const std::uint64_t length = parser.content_length().value_or(0);
  if (length == 0 && !parser.chunked()) co_return true;
  if (const std::uint64_t most = exchange_->body_bytes_max(); length > most) {
    co_return co_await fail(too_large(most));
  }
  const bool is_there = stream_->buffer.size() > 0;
  constexpr unsigned http11 = 11;
  const bool knows_100 = parser.get().version() >= http11;  // RFC 9110, section 10.1.1
  if (knows_100 && !is_there && boost::beast::iequals(parser.get()[http::field::expect], "100-continue")) {
    constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    const auto [error, size] = co_await stream_->write_some(asio::buffer(go_on));
    if (error || size != go_on.size()) co_return false;
  }
  place_->wait(Clock::now());
  auto reading = parser.chunked() ? read_chunks() : read_declared(length);
  const bool is_complete = co_await std::move(reading);
  co_return is_complete;
}

// Responds if the client is still there. Returns false: the connection is to be closed.
asio::awaitable<bool> HttpSession::fail(std::optional<Problem> problem) {
  if (problem) co_await answer_last(*problem);
  co_return false;
}

// Reads directly into the request's body: a large body is neither copied nor read in small parts.
asio::awaitable<bool> HttpSession::read_declared(std::uint64_t length) {
  auto& body = exchange_->request.body;
  auto& buffer = stream_->buffer;
  const auto total = static_cast<std::size_t>(length);
  std::size_t have = std::min(buffer.size(), total);
  const auto reserve_body = [&](std::size_t bytes) {
    const std::size_t room = std::min(bytes, total);
    if (!exchange_->hold(room)) return false;
    body.reserve(room + body_padding_bytes);
    body.resize(room);
    return true;
  };
  if (!reserve_body(std::max(have, body_read_bytes))) co_return co_await fail(too_much_at_once());
  asio::buffer_copy(asio::buffer(body), buffer.data(), have);
  buffer.consume(have);
  while (have < total) {
    // Memory grows with the bytes received, not with the declared length.
    if (have == body.size() && !reserve_body(2 * have)) co_return co_await fail(too_much_at_once());
    const auto [error, size] = co_await stream_->read_some(asio::buffer(body) + have);
    if (error) co_return co_await fail(problem_of(error, timed_out_));
    have += size;
  }
  co_return true;
}

asio::awaitable<bool> HttpSession::read_chunks() {
  Parser& parser = exchange_->parser();
  auto& buffer = stream_->buffer;
  const std::uint64_t most = exchange_->body_bytes_max();
  parser.body_limit(most);
  while (!parser.is_done()) {
    error_code error;
    std::size_t taken = 0;  // put() may consume only a part of the buffer
    if (buffer.size() > 0) taken = parser.put(buffer.data(), error);
    buffer.consume(taken);
    const bool needs_more = taken == 0 || error == http::error::need_more;
    if (error == http::error::need_more) error = {};
    if (!error && has_too_many_fields(parser.get())) error = http::error::header_limit;
    if (error == http::error::body_limit) co_return co_await fail(too_large(most));
    if (!error && !exchange_->hold(parser.get().body().size())) co_return co_await fail(too_much_at_once());
    if (!error && !parser.is_done() && needs_more) error = co_await stream_->fill(body_read_bytes);
    if (error) co_return co_await fail(problem_of(error, timed_out_));
  }
  exchange_->request.body = std::move(parser.get().body());
  co_return true;
}

asio::awaitable<bool> HttpSession::answer(const HttpResponse& response, bool keep_alive, bool head_only,
                                          Unread unread) {
  std::string& head = exchange_->head;
  head.clear();
  write_head(response, keep_alive, *sessions_, head);
  std::string_view rest = head_only ? std::string_view() : response.content();
  if (rest.size() <= joined_bytes_max) head += std::exchange(rest, {});
  for (std::string_view part : {std::string_view(head), rest}) {
    std::size_t since_armed = write_bytes;
    while (!part.empty()) {
      if (since_armed >= write_bytes) {
        arm(sessions_->limits.request_max);
        since_armed = 0;
      }
      if (unread == Unread::end && !stream_->can_write()) {
        is_stuck_ = true;
        co_return false;
      }
      place_->wait(Clock::now());
      const auto [error, size] =
          co_await stream_->write_some(asio::buffer(part.data(), std::min(part.size(), write_bytes)));
      is_stuck_ = error.failed();
      if (error) co_return false;
      part.remove_prefix(size);
      since_armed += size;
    }
  }
  co_return true;
}

// Responds before the body is read. The connection stays open only if the whole body has been received
// already. It is closed at once if the client does not read the response, so that such a client cannot occupy
// a connection.
asio::awaitable<bool> HttpSession::answer_early(const HttpResponse& response) {
  auto& buffer = stream_->buffer;
  const Parser& parser = exchange_->parser();
  const auto length = parser.content_length().value_or(0);
  if (parser.chunked() || length > buffer.size()) {
    co_await answer_last(response);
    co_return false;
  }
  buffer.consume(static_cast<std::size_t>(length));
  const auto& header = parser.get();
  const bool goes_on = header.keep_alive() && !sessions_->stopping;
  const bool is_sent = co_await answer(response, goes_on, exchange_->is_head(), Unread::end);
  if (!is_sent) co_return false;
  co_return goes_on;
}

asio::awaitable<void> HttpSession::answer_last(const Problem& problem) {
  if (exchange_->request.path.empty()) {
    sessions_->totals->count_unread(problem.code);
  } else if (sessions_->service.refused) {
    sessions_->service.refused(exchange_->request, problem);
  }
  const HttpResponse response = to_response(problem);
  co_await answer_last(response);
}

asio::awaitable<void> HttpSession::answer_last(const HttpResponse& response) {
  has_unread_ = true;
  cancelled_ = false;
  co_await answer(response, false, exchange_->is_head(), Unread::end);
}

// Closes the connection after the client has read its response: closing with unread bytes would reset it.
asio::awaitable<void> HttpSession::end() {
  exchange_->release();
  if (is_stuck_) co_return;
  place_->wait(Clock::now());
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
