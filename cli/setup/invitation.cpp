#include "cli/setup/invitation.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/x509.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/base64.h"
#include "base/json_bounds.h"
#include "base/printable.h"
#include "cli/program/options.h"
#include "cli/setup/authority.h"
#include "peer/http/credentials.h"

namespace spoor::cli {
namespace {

namespace asio = boost::asio;
namespace ssl = asio::ssl;
using boost::system::error_code;
using nlohmann::ordered_json;
using tcp = asio::ip::tcp;
using Stream = ssl::stream<boost::beast::tcp_stream>;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::seconds session_max{10};
constexpr std::chrono::seconds shutdown_max{2};
constexpr std::size_t sessions_max = 256;
constexpr std::size_t secret_bytes = 16;
constexpr std::size_t fingerprint_bytes = 32;
constexpr std::size_t json_levels_max = 8;

base::Error failed(const std::string& what, const error_code& error) {
  return {error, fmt::format("{}: {}", what, error.message())};
}

// The object on the line; nothing without one.
asio::awaitable<std::optional<ordered_json>> read_line(Stream& stream) {
  std::string line;
  const auto [error, size] =
      co_await asio::async_read_until(stream, asio::dynamic_buffer(line, line_bytes_max), '\n', as_result);
  if (error) co_return std::nullopt;
  line.resize(size);
  if (base::is_nested_deeper(line, json_levels_max)) co_return std::nullopt;
  ordered_json parsed = ordered_json::parse(line, nullptr, false);
  if (!parsed.is_object()) co_return std::nullopt;
  co_return parsed;
}

asio::awaitable<error_code> write_line(Stream& stream, std::string line) {
  line += '\n';
  const auto [error, size] = co_await asio::async_write(stream, asio::buffer(line), as_result);
  // Without it the other end may lose what it has not read yet.
  stream.next_layer().expires_after(shutdown_max);
  if (!error) co_await stream.async_shutdown(as_result);
  co_return error;
}

std::string member(const ordered_json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Serves connections until one of them has received its response.
class Inviter {
 public:
  Inviter(const Invitation& invitation, const InvitationCalls& calls)
      : invitation_(invitation), calls_(calls), tls_(ssl::context::tlsv13_server), acceptor_(context_) {}

  base::Result<> listen() {
    error_code error;
    tls_.use_certificate_chain_file(invitation_.certificate, error);
    if (!error) tls_.use_private_key_file(invitation_.key, ssl::context::pem, error);
    if (error) return failed("cannot use the certificate of this node", error);
    const tcp::endpoint at(asio::ip::make_address(invitation_.address, error), invitation_.port);
    if (!error) acceptor_.open(at.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(at, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error)
      return failed(fmt::format("cannot listen on {} port {}", invitation_.address, invitation_.port), error);
    return {};
  }

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

  bool run() {
    spawn(accept());
    context_.run_for(invitation_.time_max);
    return is_done_;
  }

 private:
  void spawn(asio::awaitable<void> coroutine) {
    asio::co_spawn(context_, std::move(coroutine), [](const std::exception_ptr& error) {
      if (error) std::rethrow_exception(error);
    });
  }

  asio::awaitable<void> accept() {
    for (;;) {
      auto [error, socket] = co_await acceptor_.async_accept(as_result);
      if (error) continue;  // of the connection
      if (sessions_ < sessions_max) spawn(serve(std::move(socket)));
    }
  }

  asio::awaitable<void> serve(tcp::socket socket) {
    ++sessions_;
    error_code error;
    const std::string from = socket.remote_endpoint(error).address().to_string();
    const auto stream = std::make_unique<Stream>(boost::beast::tcp_stream(std::move(socket)), tls_);
    stream->next_layer().expires_after(session_max);
    const std::string why = co_await respond(*stream, from);
    --sessions_;
    if (why.empty()) context_.stop();
    if (!why.empty()) calls_.refused(from, why);
  }

  // Returns why the node has not joined; empty: it has.
  asio::awaitable<std::string> respond(Stream& stream, const std::string& from) {
    const auto [error] = co_await stream.async_handshake(Stream::server, as_result);
    if (error) co_return fmt::format("no TLS: {}", error.message());
    const auto request = co_await read_line(stream);
    if (!request) co_return "it sent no request to join";
    const auto response = admit(*request, from);
    const std::string text =
        response ? response->dump() : ordered_json{{"error", response.error().message}}.dump();
    const error_code lost = co_await write_line(stream, text);
    if (!response) co_return response.error().message;
    is_done_ = !lost;
    is_spent_ = !lost;
    co_return lost ? fmt::format("it did not read its response: {}", lost.message()) : "";
  }

  base::Result<ordered_json> admit(const ordered_json& request, const std::string& from) {
    const auto secret = base::from_base64(member(request, "secret"));
    const std::string& own = invitation_.token.secret;
    if (!secret || secret->size() != own.size() || CRYPTO_memcmp(secret->data(), own.data(), own.size()) != 0)
      return invalid("it has another token");
    if (is_spent_) return invalid("the token has been used");
    auto response = calls_.admit(request, from);
    is_spent_ = response.has_value();
    return response;
  }

  const Invitation& invitation_;
  const InvitationCalls& calls_;
  ssl::context tls_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  std::size_t sessions_ = 0;
  bool is_spent_ = false;  // a node has, or is about to have, its response
  bool is_done_ = false;
};

struct Joining {
  const std::string& host;
  std::uint16_t port;
  const JoinToken& token;
  const std::function<ordered_json(const std::string&)>& make_request;
};

asio::awaitable<base::Result<ordered_json>> exchange(const Joining& joining, ssl::context& tls) {
  const std::string where = fmt::format("{} port {}", base::printable(joining.host), joining.port);
  const auto executor = co_await asio::this_coro::executor;
  tcp::resolver resolver(executor);
  const auto [unknown, found] =
      co_await resolver.async_resolve(joining.host, std::to_string(joining.port), as_result);
  if (unknown) co_return failed(fmt::format("cannot find {}", where), unknown);
  const auto stream = std::make_unique<Stream>(boost::beast::tcp_stream(executor), tls);
  stream->next_layer().expires_after(session_max);
  const auto [closed, endpoint] = co_await stream->next_layer().async_connect(found, as_result);
  if (closed) {
    co_return failed(
        fmt::format("cannot connect to {}, where 'spoor setup --invite' has to be running", where), closed);
  }
  const auto [refused] = co_await stream->async_handshake(Stream::client, as_result);
  if (refused) co_return failed(fmt::format("cannot agree on TLS with {}", where), refused);
  const X509* const certificate = SSL_get0_peer_certificate(stream->native_handle());
  if (certificate == nullptr || fingerprint_of(certificate) != joining.token.fingerprint)
    co_return invalid(fmt::format("{} is not the node that made this token: nothing was sent to it", where));
  ordered_json request =
      joining.make_request(stream->next_layer().socket().local_endpoint().address().to_string());
  request["secret"] = base::to_base64(joining.token.secret);
  const std::string sent = request.dump() + '\n';
  const auto [lost, size] = co_await asio::async_write(*stream, asio::buffer(sent), as_result);
  if (lost) co_return failed(fmt::format("cannot send to {}", where), lost);
  auto response = co_await read_line(*stream);
  if (!response) co_return invalid(fmt::format("{} ended the connection without a response", where));
  if (const auto why = member(*response, "error"); !why.empty())
    co_return invalid(fmt::format("{} refuses: {}", where, base::printable(why)));
  co_return *std::move(response);
}

}  // namespace

JoinToken make_join_token(std::string fingerprint) {
  const auto bytes = peer::random_bytes(secret_bytes);
  return {std::string(bytes.begin(), bytes.end()), std::move(fingerprint)};
}

std::string to_text(const JoinToken& token) { return base::to_base64(token.secret + token.fingerprint); }

base::Result<JoinToken> parse_join_token(const std::string& text) {
  const auto bytes = base::from_base64(text);
  if (!bytes || bytes->size() != secret_bytes + fingerprint_bytes)
    return invalid("the token is not one: expected the 64 characters that 'spoor setup --invite' prints");
  return JoinToken{bytes->substr(0, secret_bytes), bytes->substr(secret_bytes)};
}

bool is_of_network(const std::string& text) {
  error_code error;
  const auto address = asio::ip::make_address(text, error);
  if (error || address.is_loopback() || address.is_unspecified() || address.is_multicast()) return false;
  return !address.is_v6() || !address.to_v6().is_link_local();
}

bool is_own_address(const std::string& text) {
  error_code error;
  const tcp::endpoint at(asio::ip::make_address(text, error), 0);
  asio::io_context context(1);
  tcp::acceptor acceptor(context);
  if (!error) acceptor.open(at.protocol(), error);
  if (!error) acceptor.bind(at, error);
  return !error;
}

base::Result<> invite(const Invitation& invitation, const InvitationCalls& calls) {
  Inviter inviter(invitation, calls);
  if (auto listens = inviter.listen(); !listens) return listens;
  calls.listening(inviter.port());
  if (inviter.run()) return {};
  return base::Error(std::make_error_code(std::errc::timed_out), "no node has joined in time");
}

base::Result<ordered_json> join(const std::string& host, std::uint16_t port, const JoinToken& token,
                                const std::function<ordered_json(const std::string&)>& make_request) {
  asio::io_context context(1);
  ssl::context tls(ssl::context::tlsv13_client);  // the fingerprint is verified, not a name
  const Joining joining{host, port, token, make_request};
  std::optional<base::Result<ordered_json>> response;
  asio::co_spawn(context, exchange(joining, tls),
                 [&](const std::exception_ptr& error, base::Result<ordered_json> result) {
                   if (error) std::rethrow_exception(error);
                   response = std::move(result);
                 });
  context.run();
  return *std::move(response);
}

}  // namespace spoor::cli
