#include "daemon/http_server.h"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/url.hpp>
#include <ctime>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "daemon/problem.h"
#include "daemon/task.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Socket = asio::generic::stream_protocol::socket;

// Errors come back as values: a client that hangs up is not exceptional.
constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

constexpr std::size_t first_read_bytes = 4096;
constexpr std::size_t buffer_bytes_spare = std::size_t{64} << 10U;  // for reading ahead in the body
constexpr std::size_t lingering_bytes_max = std::size_t{1} << 20U;
constexpr std::chrono::milliseconds lingering_max{2'000};
constexpr std::chrono::milliseconds accept_pause{100};  // when descriptors have run out

using Parser = http::request_parser<http::string_body>;

// The request as the API sees it; nothing where its target is no path.
std::optional<HttpRequest> to_request(Parser& parser) {
  auto& message = parser.get();
  const std::string_view target(message.target().data(), message.target().size());
  auto url = boost::urls::parse_origin_form(target);
  if (!url) url = boost::urls::parse_uri(target);  // the absolute form, as sent to proxies
  if (!url) return std::nullopt;
  HttpRequest request;
  request.method = std::string(message.method_string());
  request.path = url->path();
  for (const auto& parameter : url->params())
    request.query[std::string(parameter.key)] = std::string(parameter.value);
  request.content_type = std::string(message[http::field::content_type]);
  request.content_encoding = std::string(message[http::field::content_encoding]);
  request.has_length = parser.content_length().has_value() || parser.chunked();
  request.body = std::move(message.body());
  return request;
}

// What to tell a client whose request could not be read; nothing where it has gone.
std::optional<Problem> problem_of(const error_code& error, bool timed_out, std::uint64_t body_bytes_max) {
  if (timed_out) return Problem{408, "timeout", "the request did not arrive in time"};
  // Beast bounds neither a chunk's extension nor the trailer; the buffer does.
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return Problem{431, "headers_too_large", "the header of the request is too large"};
  }
  if (error == http::error::body_limit) {
    return Problem{
        413, "body_too_large",
        fmt::format("the body is over limits.max_body ({} bytes); send it in parts", body_bytes_max)};
  }
  const bool is_gone = error == http::error::end_of_stream || error == http::error::partial_message ||
                       error.category() != make_error_code(http::error::bad_method).category();
  if (is_gone) return std::nullopt;
  return Problem{400, "invalid_request", fmt::format("this is not HTTP/1.1: {}", error.message())};
}

}  // namespace

struct HttpServer::Impl : std::enable_shared_from_this<HttpServer::Impl> {
  class Session;

  Impl(asio::io_context& the_context, Options the_options)
      : context(the_context), options(the_options), grace(the_context) {}

  template <class Acceptor>
  asio::awaitable<void> accept(Acceptor& acceptor);
  void admit(Socket socket);
  static asio::awaitable<void> serve(std::shared_ptr<Session> session, bool is_full);
  void stop();

  asio::io_context& context;
  const Options options;
  Handler handler;
  std::vector<std::unique_ptr<asio::ip::tcp::acceptor>> tcp_acceptors;
  std::vector<std::unique_ptr<asio::local::stream_protocol::acceptor>> unix_acceptors;
  std::vector<std::filesystem::path> socket_files;
  std::set<Session*> sessions;  // each removes itself when it ends
  asio::steady_timer grace;
  bool stopping = false;
};

// One connection. Lives as long as its coroutine, or a handler of its timer, holds it.
class HttpServer::Impl::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Impl> server, Socket socket)
      : server_(std::move(server)),
        socket_(std::move(socket)),
        deadline_(server_->context),
        buffer_(server_->options.header_bytes_max + buffer_bytes_spare) {
    server_->sessions.insert(this);
  }
  ~Session() {
    server_->sessions.erase(this);
    if (server_->stopping && server_->sessions.empty()) server_->grace.cancel();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  asio::awaitable<void> run() {
    bool go_on = true;
    while (go_on) go_on = co_await serve_one();
    if (has_unread_) co_await linger();
    deadline_.cancel();
  }

  asio::awaitable<void> refuse() {
    Problem problem{503, "overloaded", "too many connections (limits.max_connections); try again"};
    co_await answer_last(std::move(problem));
    co_await linger();
    deadline_.cancel();
  }

  // A session between two requests ends at once; another one after its answer.
  void stop() {
    if (idle_) cancel();
  }

  void cancel() {
    error_code ignored;
    socket_.cancel(ignored);
    cancelled_ = true;
  }

 private:
  // Cancels what the socket does when the time is over.
  void arm(std::chrono::milliseconds time) {
    deadline_.expires_after(time);
    deadline_.async_wait([self = shared_from_this()](const error_code& error) {
      if (error || self->deadline_.expiry() > asio::steady_timer::clock_type::now()) return;
      self->timed_out_ = true;
      self->cancel();
    });
  }

  // Reads and answers one request; false when the connection is to end.
  asio::awaitable<bool> serve_one() {
    if (buffer_.size() == 0) {
      const bool has_come = co_await wait_for_request();
      if (!has_come) co_return false;
    }
    Parser parser;
    parser.header_limit(server_->options.header_bytes_max);
    parser.body_limit(server_->options.body_bytes_max);
    arm(server_->options.request_max);
    const error_code error = co_await read(parser);
    if (error) {
      const auto problem = problem_of(error, timed_out_, server_->options.body_bytes_max);
      if (problem) co_await answer_last(*problem);
      co_return false;
    }
    const bool is_head = parser.get().method() == http::verb::head;
    const bool keep_alive = parser.get().keep_alive() && !server_->stopping;
    auto request = to_request(parser);
    if (!request) {
      Problem problem{400, "invalid_request", "the target of the request is no path"};
      co_await answer_last(std::move(problem));
      co_return false;
    }
    if (is_head) request->method = "GET";
    deadline_.cancel();
    const HttpResponse response = co_await server_->handler(*request);
    arm(server_->options.request_max);
    const bool is_sent = co_await answer(response, keep_alive && !server_->stopping, is_head);
    co_return is_sent&& keep_alive && !server_->stopping;
  }

  asio::awaitable<bool> wait_for_request() {
    if (server_->stopping) co_return false;
    idle_ = true;
    arm(server_->options.idle_max);
    const auto [error, size] = co_await socket_.async_read_some(buffer_.prepare(first_read_bytes), as_result);
    idle_ = false;
    if (error) co_return false;
    buffer_.commit(size);
    co_return true;
  }

  asio::awaitable<error_code> read(Parser& parser) {
    const auto [header_error, header_size] =
        co_await http::async_read_header(socket_, buffer_, parser, as_result);
    if (header_error) co_return header_error;
    if (boost::beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
      const auto [error, size] = co_await asio::async_write(socket_, asio::buffer(go_on), as_result);
      if (error) co_return error;
    }
    const auto [error, size] = co_await http::async_read(socket_, buffer_, parser, as_result);
    co_return error;
  }

  asio::awaitable<void> answer_last(Problem problem) {
    has_unread_ = true;
    arm(lingering_max);
    const HttpResponse response = to_response(problem);
    co_await answer(response, false, false);
  }

  asio::awaitable<bool> answer(const HttpResponse& response, bool keep_alive, bool head_only) {
    http::response<http::string_body> message{http::int_to_status(response.status), 11};
    message.set(http::field::server, "spoord");
    message.set(http::field::date,
                fmt::format("{:%a, %d %b %Y %H:%M:%S GMT}", fmt::gmtime(std::time(nullptr))));
    if (!response.content_type.empty()) message.set(http::field::content_type, response.content_type);
    for (const auto& [name, value] : response.headers) message.set(name, value);
    message.keep_alive(keep_alive);
    message.content_length(response.body.size());
    if (!head_only) message.body() = response.body;
    http::response_serializer<http::string_body> serializer(message);
    const auto [error, size] = co_await http::async_write(socket_, serializer, as_result);
    co_return !error;
  }

  // Lets the client read its answer: closing with unread bytes would reset the connection.
  asio::awaitable<void> linger() {
    error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    if (ignored) co_return;
    cancelled_ = false;
    arm(lingering_max);
    for (std::size_t total = 0; total < lingering_bytes_max && !cancelled_;) {
      buffer_.clear();
      const auto [error, size] =
          co_await socket_.async_read_some(buffer_.prepare(first_read_bytes), as_result);
      if (error) break;
      total += size;
    }
  }

  std::shared_ptr<Impl> server_;
  Socket socket_;
  asio::steady_timer deadline_;
  boost::beast::flat_buffer buffer_;  // what is behind the bytes that were taken; bounded
  bool idle_ = false;
  bool timed_out_ = false;
  bool cancelled_ = false;
  bool has_unread_ = false;  // the request was refused before all of it was read
};

template <class Acceptor>
asio::awaitable<void> HttpServer::Impl::accept(Acceptor& acceptor) {
  const auto self = shared_from_this();
  asio::steady_timer pause(context);
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(as_result);
    if (stopping || error == asio::error::operation_aborted) co_return;
    if (error) {
      spdlog::warn("cannot accept a connection: {}", error.message());
      pause.expires_after(accept_pause);
      co_await pause.async_wait(as_result);
      continue;
    }
    if constexpr (std::is_same_v<Acceptor, asio::ip::tcp::acceptor>) {
      error_code ignored;
      socket.set_option(asio::ip::tcp::no_delay(true), ignored);
    }
    admit(Socket(std::move(socket)));
  }
}

void HttpServer::Impl::admit(Socket socket) {
  const bool is_full = sessions.size() >= options.connections_max;
  // Beyond the limit a connection still gets an answer, as long as there are not too many of these.
  if (sessions.size() >= options.connections_max + options.connections_max / 4 + 1) return;
  auto session = std::make_shared<Session>(shared_from_this(), std::move(socket));
  asio::co_spawn(context, serve(std::move(session), is_full), rethrow);
}

// Holds the session while it is served.
asio::awaitable<void> HttpServer::Impl::serve(std::shared_ptr<Session> session, bool is_full) {
  if (is_full) {
    co_await session->refuse();
  } else {
    co_await session->run();
  }
}

void HttpServer::Impl::stop() {
  if (std::exchange(stopping, true)) return;
  error_code ignored;
  for (const auto& acceptor : tcp_acceptors) acceptor->close(ignored);
  for (const auto& acceptor : unix_acceptors) acceptor->close(ignored);
  for (const auto& file : socket_files) {
    std::error_code gone;
    std::filesystem::remove(file, gone);
  }
  if (sessions.empty()) return;
  for (Session* session : sessions) session->stop();
  grace.expires_after(options.grace_max);
  grace.async_wait([self = shared_from_this()](const error_code& error) {
    if (error) return;
    for (Session* session : self->sessions) session->cancel();
  });
}

HttpServer::HttpServer(asio::io_context& context, Options options)
    : impl_(std::make_shared<Impl>(context, options)) {}

HttpServer::~HttpServer() = default;

base::Result<std::string> HttpServer::listen_tcp(const std::string& address, std::uint16_t port) {
  error_code error;
  const auto ip = asio::ip::make_address(address, error);
  if (error) return base::Error(error, fmt::format("'{}' is no IP address", address));
  auto acceptor = std::make_unique<asio::ip::tcp::acceptor>(impl_->context);
  const asio::ip::tcp::endpoint endpoint(ip, port);
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(asio::socket_base::reuse_address(true), error);
  if (!error && ip.is_v6()) acceptor->set_option(asio::ip::v6_only(true), error);
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return base::Error(error, fmt::format("cannot listen on {} port {}: {}", address, port, error.message()));
  }
  const std::uint16_t bound = acceptor->local_endpoint().port();
  impl_->tcp_acceptors.push_back(std::move(acceptor));
  return ip.is_v6() ? fmt::format("http://[{}]:{}", address, bound)
                    : fmt::format("http://{}:{}", address, bound);
}

base::Result<std::string> HttpServer::listen_unix(const std::filesystem::path& path) {
  using Protocol = asio::local::stream_protocol;
  std::error_code ignored;
  std::filesystem::create_directory(path.parent_path(), ignored);  // bind() tells what is wrong
  error_code error;
  if (std::filesystem::is_socket(path, ignored)) {
    Protocol::socket probe(impl_->context);
    probe.connect(Protocol::endpoint(path.native()), error);
    if (!error) {
      return base::Error(std::make_error_code(std::errc::address_in_use),
                         fmt::format("cannot listen on {}: another process serves it", path.native()));
    }
    std::filesystem::remove(path, ignored);
    error = {};
  }
  auto acceptor = std::make_unique<Protocol::acceptor>(impl_->context);
  acceptor->open(Protocol(), error);
  if (!error) acceptor->bind(Protocol::endpoint(path.native()), error);
  if (!error && ::chmod(path.c_str(), 0660) != 0) error = error_code(errno, boost::system::system_category());
  if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  if (error)
    return base::Error(error, fmt::format("cannot listen on {}: {}", path.native(), error.message()));
  impl_->unix_acceptors.push_back(std::move(acceptor));
  impl_->socket_files.push_back(path);
  return "unix:" + path.native();
}

void HttpServer::start(Handler handler) {
  impl_->handler = std::move(handler);
  for (const auto& acceptor : impl_->tcp_acceptors)
    asio::co_spawn(impl_->context, impl_->accept(*acceptor), rethrow);
  for (const auto& acceptor : impl_->unix_acceptors)
    asio::co_spawn(impl_->context, impl_->accept(*acceptor), rethrow);
}

void HttpServer::stop() { impl_->stop(); }

}  // namespace spoor::daemon
