#include "daemon/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/http/tls.h"
#include "tests/support/certificates.h"
#include "tests/support/loopback.h"
#include "tests/support/raw_client.h"
#include "tests/support/temp_directory.h"

namespace spoor::daemon {
namespace {

using support::RawClient;
using testing::HasSubstr;
using testing::StartsWith;

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

struct Exchange {
  std::string name;
  std::string request;
  std::vector<std::string> in_answer;  // its beginning, and texts in it
};

void PrintTo(const Exchange& exchange, std::ostream* out) { *out << exchange.name; }

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string get(const std::string& target, const std::string& fields = {}) {
  return "GET " + target + " HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n";
}
std::string post(const std::string& fields, const std::string& rest = {}) {
  return "POST / HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n" + rest;
}

const std::string last = "Connection: close\r\n";
const std::string chunked = "Transfer-Encoding: chunked\r\n";
const std::string chunk_of_501 = "1f5\r\n" + std::string(501, 'x') + "\r\n";

class HttpExchangeTest : public HttpServerTest, public testing::WithParamInterface<Exchange> {};

TEST_P(HttpExchangeTest, Answer_IsAsExpected) {
  const std::string answer = talk(GetParam().request);
  EXPECT_THAT(answer, StartsWith(GetParam().in_answer.front()));
  for (const std::string& text : GetParam().in_answer) EXPECT_THAT(answer, HasSubstr(text));
}

INSTANTIATE_TEST_SUITE_P(
    , HttpExchangeTest,
    testing::Values(
        Exchange{"PathAndQuery_ArriveDecoded",
                 get("/a%20b?q=x%2Fy&z", last),
                 {"HTTP/1.1 200 OK\r\n", "GET /a b x/y "}},
        Exchange{"PipelinedRequests_AreAnsweredInOrder",
                 get("/1") + get("/2", last),
                 {"HTTP/1.1 200 OK\r\n", "\r\n\r\nGET /1 - HTTP/1.1 200 OK\r\n", "GET /2 - "}},
        Exchange{"ChunkedBody_ArrivesWhole",
                 post(chunked + last, "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
                 {"HTTP/1.1 200 OK\r\n", "POST / - abcde"}},
        // It waited for more where several steps of the body had come at once.
        Exchange{"ChunkedRequest_ArrivesInOnePiece_IsAnsweredAtOnce",
                 post(chunked + last, "3;x=y\r\nabc\r\n0\r\nT: x\r\n\r\n"),
                 {"HTTP/1.1 200 OK\r\n", "POST / - abc"}},
        Exchange{"HeadRequest_ResponseBodyIsEmpty",
                 "HEAD /x HTTP/1.1\r\nHost: h\r\n\r\n" + get("/y", last),
                 {"HTTP/1.1 200 OK\r\n", "Content-Length: 9\r\nConnection: keep-alive\r\n\r\nHTTP/1.1 200 "}},
        Exchange{"NoHostInHttp10_Is200", "GET / HTTP/1.0\r\n\r\n", {"HTTP/1.1 200 "}},
        Exchange{"NoHostInHttp11_Is400", "GET / HTTP/1.1\r\n\r\n", {"HTTP/1.1 400 "}},
        // What was meant is not known.
        Exchange{"DuplicateQueryParameter_Is400", get("/?q=1&q=2"), {"HTTP/1.1 400 "}},
        Exchange{"Garbage_Is400AndClosesTheConnection",
                 "\x16\x03\x01 this is no HTTP\r\n\r\n",
                 {"HTTP/1.1 400 ", "\"code\":\"invalid_request\""}},
        Exchange{"DeclaredBodyTooLarge_Is413", post("Content-Length: 1001\r\n"), {"HTTP/1.1 413 "}},
        Exchange{"ChunkedBodyTooLarge_Is413",
                 post(chunked, chunk_of_501 + chunk_of_501),
                 {"HTTP/1.1 413 ", "\"code\":\"body_too_large\""}},
        Exchange{"AbsurdContentLength_IsRefusedAtOnce",
                 post("Content-Length: 18446744073709551615\r\n"),
                 {"HTTP/1.1 4"}},
        Exchange{
            "HeaderTooLarge_Is431", get("/", "X: " + std::string(3000, 'x') + "\r\n"), {"HTTP/1.1 431 "}},
        // Each read ends within a field: the parser took one after the other, for ever.
        Exchange{
            "EndlessFields_Is431", "GET / HTTP/1.1\r\na" + repeated(":\r\na", 25'000), {"HTTP/1.1 431 "}},
        Exchange{"HeaderOfTooManyFields_Is431", get("/", repeated("a:\r\n", 100)), {"HTTP/1.1 431 "}},
        Exchange{"TrailerOfTooManyFields_Is431",
                 post(chunked, "0\r\n" + repeated("a:\r\n", 200) + "\r\n"),
                 {"HTTP/1.1 431 "}},
        // They were collected without a bound.
        Exchange{"EndlessChunkExtension_Is431",
                 post(chunked, "1;" + std::string(100'000, 'x')),
                 {"HTTP/1.1 431 "}},
        Exchange{"EndlessTrailer_Is431",
                 post(chunked, "0\r\nX: " + std::string(100'000, 'x')),
                 {"HTTP/1.1 431 "}}),
    [](const testing::TestParamInfo<Exchange>& info) { return info.param.name; });

// RFC 9110, section 6.6.1.
TEST_F(HttpServerTest, Responses_CarryADateHeader) {
  EXPECT_THAT(
      talk(get("/", last)),
      testing::ContainsRegex("\r\nDate: [A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT\r\n"));
}

TEST_F(ImpatientHttpServerTest, SlowHeaderOrBody_Is408) {
  EXPECT_THAT(talk("GET / HTTP/1.1\r\nHos"), StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(talk(post("Content-Length: 5\r\n", "ab")), StartsWith("HTTP/1.1 408 "));
}

TEST_F(ImpatientHttpServerTest, IdleConnection_IsClosedWithoutAResponse) { EXPECT_EQ(talk(""), ""); }

// With few connections allowed, most of those beyond were closed without a word; and those that were refused
// kept out others for as long as they stayed.
TEST_F(HttpServerTest, ConnectionLimitReached_Is503UntilAServedOneEnds) {
  std::list<RawClient> held;
  for (int i = 0; i < 3; ++i) {
    held.emplace_back(port_).send(get("/"));
    held.back().receive_until("GET / - ");  // it is known to be served before the next one comes
  }
  for (int i = 0; i < 20; ++i) {
    const std::string answer = talk(get("/"));
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
    EXPECT_THAT(answer, HasSubstr("\"code\":\"overloaded\""));
    EXPECT_THAT(answer, HasSubstr("Retry-After: 1\r\n"));
  }
  RawClient refused(port_);  // it stays
  refused.send(get("/"));
  EXPECT_THAT(refused.receive_until("overloaded"), StartsWith("HTTP/1.1 503 "));
  held.pop_front();
  while (server_.totals().open > 3) std::this_thread::yield();
  EXPECT_THAT(talk(get("/", last)), StartsWith("HTTP/1.1 200 "));
  held.front().send(get("/again"));
  EXPECT_THAT(held.front().receive_until("GET /again"), HasSubstr("GET /again"));
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
  EXPECT_THAT(both, StartsWith("HTTP/1.1 403 ")) << both;
  EXPECT_NE(both.find("GET /yes"), std::string::npos) << both;
  RawClient other(port);
  other.send("POST /no HTTP/1.1\r\nHost: h\r\nContent-Length: 3000\r\n\r\nabc");
  EXPECT_THAT(other.receive_all(), StartsWith("HTTP/1.1 403 ")) << "and the end";
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
  EXPECT_THAT(*url, StartsWith("http://" + support::own_loopback() + ":"));
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
