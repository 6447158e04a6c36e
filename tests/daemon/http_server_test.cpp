#include "daemon/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <thread>

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
  HttpServerTest() {
    const auto url = server_.listen_tcp(support::own_loopback(), 0);
    port_ = static_cast<std::uint16_t>(std::stoi(url.value().substr(url->rfind(':') + 1)));
    server_.start(echo);
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
  HttpServer server_{context_,
                     {.body_bytes_max = 1000,
                      .header_bytes_max = 2000,
                      .connections_max = 3,
                      .idle_max = std::chrono::milliseconds(200),
                      .request_max = std::chrono::milliseconds(200)}};
  std::uint16_t port_ = 0;
  std::jthread thread_;
};

bool begins_with(const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; }

TEST_F(HttpServerTest, PathAndQueryArriveDecoded) {
  const auto answer = talk("GET /a%20b?q=x%2Fy&z HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(begins_with(answer, "HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(answer.ends_with("GET /a b x/y ")) << answer;
}

// RFC 9110, section 6.6.1.
TEST_F(HttpServerTest, AnswersCarryTheirDate) {
  const auto answer = talk("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, testing::ContainsRegex(
                          "\r\nDate: [A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT\r\n"));
}

TEST_F(HttpServerTest, RequestsOfOneConnectionAreAnsweredInOrder) {
  const auto answer =
      talk("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_LT(answer.find("GET /1"), answer.find("GET /2"));
  EXPECT_NE(answer.find("GET /2"), std::string::npos);
}

TEST_F(HttpServerTest, ChunkedBodiesArriveWhole) {
  const auto answer = talk(
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: "
      "close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_TRUE(answer.ends_with("POST / - abcde")) << answer;
}

TEST_F(HttpServerTest, ALargeBodyIs413WhetherDeclaredOrChunked) {
  EXPECT_TRUE(
      begins_with(talk("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n"), "HTTP/1.1 413 "));
  const std::string chunk = "1f5\r\n" + std::string(501, 'x') + "\r\n";
  const auto answer =
      talk("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + chunk);
  EXPECT_TRUE(begins_with(answer, "HTTP/1.1 413 ")) << answer;
  EXPECT_NE(answer.find("\"code\":\"body_too_large\""), std::string::npos) << answer;
}

TEST_F(HttpServerTest, AnAbsurdLengthIsRefusedWithoutWaitingForIt) {
  const auto answer = talk("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551615\r\n\r\n");
  EXPECT_TRUE(begins_with(answer, "HTTP/1.1 4")) << answer;
}

TEST_F(HttpServerTest, ALargeHeaderIs431) {
  const auto answer = talk("GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(3000, 'x') + "\r\n\r\n");
  EXPECT_TRUE(begins_with(answer, "HTTP/1.1 431 ")) << answer;
}

// They were collected without a bound.
TEST_F(HttpServerTest, AnEndlessChunkExtensionAndAnEndlessTrailerAre431) {
  const std::string endless(100'000, 'x');
  for (const std::string& start : {std::string("1;"), std::string("0\r\nX: ")}) {
    const auto answer =
        talk("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + start + endless);
    EXPECT_TRUE(begins_with(answer, "HTTP/1.1 431 ")) << start << answer;
  }
}

TEST_F(HttpServerTest, ASlowHeaderAndASlowBodyAre408) {
  EXPECT_TRUE(begins_with(talk("GET / HTTP/1.1\r\nHos"), "HTTP/1.1 408 "));
  EXPECT_TRUE(
      begins_with(talk("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab"), "HTTP/1.1 408 "));
}

TEST_F(HttpServerTest, AnIdleConnectionIsClosedWithoutAWord) { EXPECT_EQ(talk(""), ""); }

TEST_F(HttpServerTest, GarbageIs400AndTheConnectionEnds) {
  const auto answer = talk("\x16\x03\x01 this is no HTTP\r\n\r\n");
  EXPECT_TRUE(begins_with(answer, "HTTP/1.1 400 ")) << answer;
  EXPECT_NE(answer.find("\"code\":\"invalid_request\""), std::string::npos) << answer;
}

TEST_F(HttpServerTest, HeadAnswersWithoutABody) {
  const auto answer = talk("HEAD /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 9\r\n"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST_F(HttpServerTest, AClientThatExpects100ContinueGetsIt) {
  RawClient client(port_);
  client.send(
      "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(begins_with(client.receive_until("\r\n\r\n"), "HTTP/1.1 100 Continue"));
  client.send("abc");
  EXPECT_TRUE(client.receive_all().ends_with("POST / - abc"));
}

TEST_F(HttpServerTest, BeyondTheConnectionLimitTheAnswerIs503) {
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

TEST(HttpServerStopTest, AConnectionBetweenTwoRequestsEndsAtOnce) {
  constexpr std::chrono::hours never{1};  // nothing but the stop may end it
  boost::asio::io_context context(1);
  HttpServer server(context, {.idle_max = never, .request_max = never, .grace_max = never});
  const auto url = server.listen_tcp(support::own_loopback(), 0);
  server.start(echo);
  const std::jthread thread([&] { context.run(); });
  RawClient client(static_cast<std::uint16_t>(std::stoi(url.value().substr(url->rfind(':') + 1))));
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  client.receive_until("GET / - ");
  boost::asio::post(context, [&] { server.stop(); });
  EXPECT_TRUE(client.receive_all().ends_with("GET / - ")) << "the end of the connection";
}

TEST_F(HttpServerTest, AUnixSocketServesTooAndAStaleOneIsReplaced) {
  const support::TempDirectory directory;
  const auto path = directory / "run/spoor.sock";
  {
    boost::asio::io_context other;
    HttpServer dead(other, {});
    ASSERT_TRUE(dead.listen_unix(path));
  }
  boost::asio::io_context other;
  HttpServer server(other, {});
  EXPECT_TRUE(server.listen_unix(path)) << "nobody answers on the old one";
  HttpServer second(other, {});
  EXPECT_FALSE(second.listen_unix(path)) << "somebody does";
}

}  // namespace
}  // namespace spoor::daemon
