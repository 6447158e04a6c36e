#include "daemon/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <future>
#include <list>
#include <memory>
#include <optional>
#include <thread>

#include "daemon/http/tls.h"
#include "tests/support/certificates.h"
#include "tests/support/loopback.h"
#include "tests/support/raw_client.h"
#include "tests/support/temp_directory.h"

namespace spoor::daemon {
namespace {

using support::RawClient;

boost::asio::awaitable<HttpResponse> echo(const HttpRequest& request) {
  HttpResponse response;
  response.content_type = "text/plain";
  response.body = request.method + ' ' + request.path + ' ' +
                  std::string(request.query_value("q").value_or("-")) + ' ' + request.body;
  co_return response;
}

// A server of its own thread, with limits that a test can reach.
class HttpServerTest : public testing::Test {
 protected:
  explicit HttpServerTest(std::chrono::milliseconds patience = std::chrono::hours(1))
      : server_(context_, {.body_bytes_max = 1000,
                           .header_bytes_max = 2000,
                           .connections_max = 3,
                           .idle_max = patience,
                           .request_max = patience}) {
    const auto url = server_.listen(HttpServer::TcpListener{.address = support::own_loopback()});
    port_ = static_cast<std::uint16_t>(std::stoi(url.value().substr(url->rfind(':') + 1)));
    server_.start({.handle = echo});
    thread_ = std::jthread([this] { context_.run(); });
  }
  ~HttpServerTest() override {
    boost::asio::post(context_, [this] { server_.stop(); });
  }

  std::string talk(const std::string& bytes) {
    RawClient client(port_);
    client.send(bytes);
    return client.receive_all();
  }

  boost::asio::io_context context_{1};
  HttpServer server_;
  std::uint16_t port_ = 0;
  std::jthread thread_;
};

class ImpatientHttpServerTest : public HttpServerTest {
 protected:
  ImpatientHttpServerTest() : HttpServerTest(std::chrono::milliseconds(200)) {}
};

bool begins_with(const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; }

TEST_F(HttpServerTest, PathAndQuery_ArriveDecoded) {
  const auto answer = talk("GET /a%20b?q=x%2Fy&z HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(begins_with(answer, "HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(answer.ends_with("GET /a b x/y ")) << answer;
}

// RFC 9110, section 6.6.1.
TEST_F(HttpServerTest, Responses_CarryADateHeader) {
  const auto answer = talk("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, testing::ContainsRegex(
                          "\r\nDate: [A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT\r\n"));
}

TEST_F(HttpServerTest, PipelinedRequests_AreAnsweredInOrder) {
  const auto answer =
      talk("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_LT(answer.find("GET /1"), answer.find("GET /2"));
  EXPECT_NE(answer.find("GET /2"), std::string::npos);
}

TEST_F(HttpServerTest, ChunkedBody_ArrivesWhole) {
  const auto answer = talk(
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: "
      "close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_TRUE(answer.ends_with("POST / - abcde")) << answer;
}

TEST_F(HttpServerTest, BodyTooLarge_DeclaredOrChunked_Is413) {
  EXPECT_TRUE(
      begins_with(talk("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n"), "HTTP/1.1 413 "));
  const std::string chunk = "1f5\r\n" + std::string(501, 'x') + "\r\n";
  const auto answer =
      talk("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + chunk);
  EXPECT_TRUE(begins_with(answer, "HTTP/1.1 413 ")) << answer;
  EXPECT_NE(answer.find("\"code\":\"body_too_large\""), std::string::npos) << answer;
}

TEST_F(HttpServerTest, AbsurdContentLength_IsRefusedAtOnce) {
  const auto answer = talk("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551615\r\n\r\n");
  EXPECT_TRUE(begins_with(answer, "HTTP/1.1 4")) << answer;
}

TEST_F(HttpServerTest, HeaderTooLarge_Is431) {
  const auto answer = talk("GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(3000, 'x') + "\r\n\r\n");
  EXPECT_TRUE(begins_with(answer, "HTTP/1.1 431 ")) << answer;
}

// Each read ends within a field: the parser took one after the other, for ever.
TEST_F(HttpServerTest, HeaderOfTooManyFields_Is431) {
  std::string endless = "GET / HTTP/1.1\r\na";
  for (int i = 0; i < 25'000; ++i) endless += ":\r\na";
  EXPECT_TRUE(begins_with(talk(endless), "HTTP/1.1 431 "));
  std::string many = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 101; ++i) many += "a:\r\n";
  EXPECT_TRUE(begins_with(talk(many + "\r\n"), "HTTP/1.1 431 "));
}

TEST_F(HttpServerTest, TrailerOfTooManyFields_Is431) {
  std::string request = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
  for (int i = 0; i < 200; ++i) request += "a:\r\n";
  EXPECT_TRUE(begins_with(talk(request + "\r\n"), "HTTP/1.1 431 "));
}

// What was meant is not known.
TEST_F(HttpServerTest, DuplicateQueryParameter_Is400) {
  EXPECT_TRUE(begins_with(talk("GET /?q=1&q=2 HTTP/1.1\r\nHost: h\r\n\r\n"), "HTTP/1.1 400 "));
}

// They were collected without a bound.
TEST_F(HttpServerTest, EndlessChunkExtensionOrTrailer_Is431) {
  const std::string endless(100'000, 'x');
  for (const std::string& start : {std::string("1;"), std::string("0\r\nX: ")}) {
    const auto answer =
        talk("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + start + endless);
    EXPECT_TRUE(begins_with(answer, "HTTP/1.1 431 ")) << start << answer;
  }
}

TEST_F(ImpatientHttpServerTest, SlowHeaderOrBody_Is408) {
  EXPECT_TRUE(begins_with(talk("GET / HTTP/1.1\r\nHos"), "HTTP/1.1 408 "));
  EXPECT_TRUE(
      begins_with(talk("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab"), "HTTP/1.1 408 "));
}

TEST_F(ImpatientHttpServerTest, IdleConnection_IsClosedWithoutAResponse) { EXPECT_EQ(talk(""), ""); }

TEST_F(HttpServerTest, Garbage_Is400AndClosesTheConnection) {
  const auto answer = talk("\x16\x03\x01 this is no HTTP\r\n\r\n");
  EXPECT_TRUE(begins_with(answer, "HTTP/1.1 400 ")) << answer;
  EXPECT_NE(answer.find("\"code\":\"invalid_request\""), std::string::npos) << answer;
}

TEST_F(HttpServerTest, HeadRequest_ResponseBodyIsEmpty) {
  const auto answer = talk("HEAD /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 9\r\n"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST_F(HttpServerTest, Expect100Continue_GetsA100) {
  RawClient client(port_);
  client.send(
      "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(begins_with(client.receive_until("\r\n\r\n"), "HTTP/1.1 100 Continue"));
  client.send("abc");
  EXPECT_TRUE(client.receive_all().ends_with("POST / - abc"));
}

TEST_F(HttpServerTest, ConnectionLimitReached_Is503) {
  RawClient held[3] = {RawClient(port_), RawClient(port_), RawClient(port_)};
  // Each is known to be served before the next one comes.
  for (RawClient& client : held) {
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    client.receive_until("GET / - ");
  }
  const auto answer = talk("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(begins_with(answer, "HTTP/1.1 503 ")) << answer;
  EXPECT_NE(answer.find("Retry-After: 1\r\n"), std::string::npos) << answer;
}

// Those that were told so kept out others for as long as they stayed.
TEST_F(HttpServerTest, RefusedConnection_DoesNotCountAgainstTheLimit) {
  std::list<RawClient> held;
  for (int i = 0; i < 3; ++i) {
    held.emplace_back(port_).send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    held.back().receive_until("GET / - ");
  }
  RawClient refused(port_);  // it stays
  refused.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(begins_with(refused.receive_until("overloaded"), "HTTP/1.1 503 "));
  held.pop_front();
  while (server_.totals().places->open() > 3) std::this_thread::yield();
  RawClient next(port_);
  next.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(begins_with(next.receive_until("GET / - "), "HTTP/1.1 200 "));
}

// It waited for more where several steps of the body had come at once.
TEST_F(HttpServerTest, ChunkedRequest_ArrivesInOnePiece_IsAnsweredAtOnce) {
  RawClient client(port_);
  client.send(
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: x\r\n\r\n");
  EXPECT_NE(client.receive_until("abc").find("POST / - abc"), std::string::npos);
}

TEST_F(HttpServerTest, MissingHostHeader_Is400InHttp11Only) {
  EXPECT_TRUE(begins_with(talk("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 400 "));
  EXPECT_TRUE(begins_with(talk("GET / HTTP/1.0\r\n\r\n"), "HTTP/1.1 200 "));
}

// What is refused before its body was read does not end the connection where the body is there already.
TEST(HttpServerAdmissionTest, Refusal_BodyAlreadyReceived_KeepsTheConnection) {
  boost::asio::io_context context(1);
  HttpServer server(context, {});
  const auto url = server.listen(HttpServer::TcpListener{.address = support::own_loopback()});
  server.start({.handle = echo, .admit = [](const HttpRequest& request) -> std::optional<HttpResponse> {
                  EXPECT_TRUE(request.body.empty());
                  if (request.path != "/no") return std::nullopt;
                  return HttpResponse{.status = 403, .body = "no"};
                }});
  const std::jthread thread([&] { context.run(); });
  const auto port = static_cast<std::uint16_t>(std::stoi(url.value().substr(url->rfind(':') + 1)));
  RawClient client(port);
  client.send(
      "POST /no HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET /yes HTTP/1.1\r\nHost: h\r\n\r\n");
  const auto both = client.receive_until("GET /yes");
  EXPECT_TRUE(begins_with(both, "HTTP/1.1 403 ")) << both;
  EXPECT_NE(both.find("GET /yes"), std::string::npos) << both;
  RawClient other(port);
  other.send("POST /no HTTP/1.1\r\nHost: h\r\nContent-Length: 3000\r\n\r\nabc");
  EXPECT_TRUE(begins_with(other.receive_all(), "HTTP/1.1 403 ")) << "and the end";
  boost::asio::post(context, [&] { server.stop(); });
}

TEST(HttpServerLimitTest, ConnectionLimitReached_EvictsTheLongestIdleConnection) {
  constexpr std::chrono::hours never{1};
  boost::asio::io_context context(1);
  HttpServer server(context, {.connections_max = 2,
                              .yield_after = std::chrono::milliseconds(0),
                              .idle_max = never,
                              .request_max = never});
  const auto url = server.listen(HttpServer::TcpListener{.address = support::own_loopback()});
  server.start({.handle = echo});
  const std::jthread thread([&] { context.run(); });
  const auto port = static_cast<std::uint16_t>(std::stoi(url.value().substr(url->rfind(':') + 1)));
  const std::string get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  RawClient first(port);
  first.send(get);
  first.receive_until("GET / - ");
  RawClient second(port);
  second.send(get);
  second.receive_until("GET / - ");
  RawClient third(port);
  third.send(get);
  EXPECT_TRUE(begins_with(third.receive_until("GET / - "), "HTTP/1.1 200 "));
  EXPECT_TRUE(first.receive_all().ends_with("GET / - ")) << "it was ended";
  second.send(get);
  EXPECT_NE(second.receive_until("HTTP/1.1 200 OK"), "");
  boost::asio::post(context, [&] { server.stop(); });
}

TEST(HttpServerLimitTest, BodyMemoryLimitReached_Is503) {
  boost::asio::io_context context(1);
  HttpServer server(context, {.bodies_bytes_max = 300'000});
  const auto url = server.listen(HttpServer::TcpListener{.address = support::own_loopback()});
  boost::asio::steady_timer gate(context, std::chrono::hours(1));
  std::promise<void> is_there;
  server.start({.handle = [&](const HttpRequest& request) -> boost::asio::awaitable<HttpResponse> {
    if (request.path == "/wait") {
      is_there.set_value();
      co_await gate.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    }
    HttpResponse response;
    response.body = request.path;
    co_return response;
  }});
  const std::jthread thread([&] { context.run(); });
  const auto port = static_cast<std::uint16_t>(std::stoi(url.value().substr(url->rfind(':') + 1)));
  const auto post = [](const std::string& path, std::size_t length) {
    return "POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n" +
           std::string(length, 'x');
  };
  RawClient large(port);
  large.send(post("/wait", 290'000));
  is_there.get_future().wait();
  RawClient other(port);
  other.send(post("/other", 200'000));
  const std::string answer = other.receive_all();
  EXPECT_TRUE(begins_with(answer, "HTTP/1.1 503 ")) << answer;
  RawClient small(port);
  small.send(post("/small", 10'000));
  EXPECT_TRUE(begins_with(small.receive_until("/small"), "HTTP/1.1 200 "));
  boost::asio::post(context, [&] { gate.cancel(); });
  EXPECT_TRUE(begins_with(large.receive_until("/wait"), "HTTP/1.1 200 "));
  RawClient again(port);
  again.send(post("/again", 200'000));
  EXPECT_TRUE(begins_with(again.receive_until("/again"), "HTTP/1.1 200 "));
  boost::asio::post(context, [&] { server.stop(); });
}

// A server that nothing but a stop ends.
class HttpServerStopTest : public testing::Test {
 protected:
  static constexpr std::chrono::hours never{1};

  void start(std::chrono::milliseconds first_max, std::shared_ptr<TlsServer> tls = nullptr) {
    server_.emplace(
        context_,
        HttpLimits{.idle_max = never, .request_max = never, .grace_max = never, .first_max = first_max});
    const auto url =
        server_->listen(HttpServer::TcpListener{.address = support::own_loopback(), .tls = std::move(tls)});
    port_ = static_cast<std::uint16_t>(std::stoi(url.value().substr(url->rfind(':') + 1)));
    server_->start({.handle = echo});
    thread_ = std::jthread([this] { context_.run(); });
  }

  // A connection that was accepted, and all before it.
  std::unique_ptr<RawClient> served() {
    auto client = std::make_unique<RawClient>(port_);
    client->send("GET /first HTTP/1.1\r\nHost: h\r\n\r\n");
    client->receive_until("GET /first - ");
    return client;
  }

  void stop() {
    boost::asio::post(context_, [this] { server_->stop(); });
  }

  boost::asio::io_context context_{1};
  std::optional<HttpServer> server_;
  std::uint16_t port_ = 0;
  std::jthread thread_;
};

TEST_F(HttpServerStopTest, IdleConnection_IsClosedAtOnce) {
  start(never);
  const auto client = served();
  stop();
  EXPECT_TRUE(client->receive_all().ends_with("GET /first - ")) << "the end of the connection";
}

// It was closed without a word, though its client could not know better.
TEST_F(HttpServerStopTest, NewConnection_GetsItsResponse) {
  start(never);
  RawClient fresh(port_);
  const auto other = served();
  stop();
  other->receive_all();  // the stop has begun
  fresh.send("GET /late HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string answer = fresh.receive_all();
  EXPECT_TRUE(answer.ends_with("GET /late - ")) << answer;
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << answer;
}

TEST_F(HttpServerStopTest, SilentNewConnection_IsClosedSoon) {
  start(std::chrono::milliseconds(50));
  RawClient fresh(port_);
  served();
  stop();
  EXPECT_EQ(fresh.receive_all(), "");
}

// It held up every stop for as long as requests under way may.
TEST_F(HttpServerStopTest, SilentTlsConnection_IsClosedSoon) {
  const support::TempDirectory directory;
  const support::Certificates authority(directory / ".", "authority");
  authority.issue("server");
  start(std::chrono::milliseconds(50),
        TlsServer::load({authority.certificate("server"), authority.key("server"), {}}).value());
  RawClient silent(port_);
  while (server_->totals().accepted == 0) std::this_thread::yield();
  stop();
  EXPECT_EQ(silent.receive_all(), "");
}

// It was lost where the server had not got round to reading it.
TEST_F(HttpServerStopTest, RequestReceivedBeforeTheStop_IsAnswered) {
  start(never);
  const auto client = served();
  std::promise<void> is_busy;
  std::promise<void> has_come;
  boost::asio::post(context_, [&] {
    is_busy.set_value();
    has_come.get_future().wait();
    server_->stop();
  });
  is_busy.get_future().wait();
  client->send("GET /second HTTP/1.1\r\nHost: h\r\n\r\n");
  client->wait_until_received();
  has_come.set_value();
  EXPECT_TRUE(client->receive_all().ends_with("GET /second - "));
}

// A configuration may say so, and it could not be bound.
TEST(HttpServerListenTest, Ipv4MappedAddress_ListensOnIpv4) {
  boost::asio::io_context context;
  HttpServer server(context, {});
  const auto url = server.listen(HttpServer::TcpListener{.address = "::ffff:" + support::own_loopback()});
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_TRUE(begins_with(*url, "http://" + support::own_loopback() + ":")) << *url;
}

TEST_F(HttpServerTest, StaleUnixSocket_IsReplacedButALiveOneIsNot) {
  const support::TempDirectory directory;
  const auto path = directory / "run/spoor.sock";
  {
    boost::asio::io_context other;
    HttpServer dead(other, {});
    ASSERT_TRUE(dead.listen(HttpServer::UnixListener{.path = path}));
  }
  boost::asio::io_context other;
  HttpServer server(other, {});
  EXPECT_TRUE(server.listen(HttpServer::UnixListener{.path = path})) << "nobody answers on the old one";
  HttpServer second(other, {});
  EXPECT_FALSE(second.listen(HttpServer::UnixListener{.path = path})) << "somebody does";
}

}  // namespace
}  // namespace spoor::daemon
