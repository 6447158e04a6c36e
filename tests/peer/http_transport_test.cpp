#include "peer/http/http_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "peer/http/send_marks.h"
#include "tests/fakes/answering_transport.h"
#include "tests/support/listening_socket.h"
#include "tests/support/loopback.h"
#include "tests/support/temp_directory.h"

namespace spoor::peer {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Not;

const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const std::string unavailable = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nno";

class Server {
 public:
  base::Endpoint endpoint() const { return {support::own_loopback(), socket_.port(), {}}; }
  HttpRequest request() const { return {endpoint(), "GET", "/", {}, {}}; }

  // Takes one connection; sends a response for each request that comes over it, and closes it. An empty one
  // is not sent.
  void respond(const std::vector<std::string>& responses) {
    const int connection = ::accept(socket_.fd(), nullptr, nullptr);
    for (const std::string& response : responses) {
      read(connection);
      EXPECT_EQ(::write(connection, response.data(), response.size()), static_cast<ssize_t>(response.size()));
    }
    ::close(connection);
  }
  // Each over a connection of its own.
  std::jthread respond_each(const std::vector<std::string>& responses) {
    return std::jthread([this, responses] {
      for (const std::string& response : responses) respond({response});
    });
  }

  // Takes one connection, reads a little, and keeps it open.
  int take_a_request() {
    const int connection = ::accept(socket_.fd(), nullptr, nullptr);
    read(connection);
    return connection;
  }

  const std::string& received() const { return received_; }

 private:
  void read(int connection) {
    char buffer[1024];
    const ssize_t got = ::read(connection, buffer, sizeof(buffer));
    EXPECT_GT(got, 0);
    received_.append(buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }

  const support::ListeningSocket socket_;
  std::string received_;
};

class HttpTransportTest : public testing::Test {
 protected:
  // Of requests one after the other, to a server with these responses.
  std::vector<base::Result<HttpResponse>> get(const std::vector<std::string>& responses,
                                              HttpTransport::Options options = {}, std::size_t requests = 1) {
    const std::jthread serving = server_.respond_each(responses);
    HttpTransport transport(std::move(options));
    std::vector<base::Result<HttpResponse>> results;
    for (; requests > 0; --requests) results.push_back(exchange(transport, server_.request()));
    return results;
  }

  // Side by side.
  static std::vector<base::Result<HttpResponse>> get_all(HttpTransport& transport,
                                                         const std::vector<HttpRequest>& requests) {
    std::vector<base::Result<HttpResponse>> results(requests.size(), HttpResponse{});
    transport.exchange(requests, [&](std::size_t index, base::Result<HttpResponse> response) {
      results[index] = std::move(response);
    });
    return results;
  }

  Server server_;
};

TEST_F(HttpTransportTest, Response_HasStatusTypeAndBody) {
  const auto response =
      get({"HTTP/1.1 418 I'm a teapot\r\nContent-Type: text/x\r\nContent-Length: 3\r\n\r\nabc"})[0];
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 418U);
  EXPECT_EQ(response->content_type, "text/x");
  EXPECT_EQ(response->body, "abc");
  EXPECT_EQ(get({"HTTP/1.1 200 OK\r\n\r\nuntil the end"})[0]->body, "until the end");
}

TEST_F(HttpTransportTest, ServerNeverResponds_IsATimeout) {
  const auto response = get({}, {.timeout = std::chrono::milliseconds(50)})[0];
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, std::errc::timed_out) << response.error().message;
}

TEST_F(HttpTransportTest, ConnectionRefused_ErrorNamesEndpoint) {
  const HttpRequest to_nobody = std::make_unique<Server>()->request();
  HttpTransport transport({});
  const auto response = exchange(transport, to_nobody);
  ASSERT_FALSE(response);
  EXPECT_THAT(response.error().message, HasSubstr(to_nobody.endpoint.to_string()));
}

// A byte at a time does not extend the time of a request.
TEST_F(HttpTransportTest, ServerRespondsWithoutEnd_IsATimeout) {
  const std::jthread serving([&] {
    const int connection = server_.take_a_request();
    while (::send(connection, "H", 1, MSG_NOSIGNAL) > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a server that sends slowly
    ::close(connection);
  });
  HttpTransport transport({.timeout = std::chrono::milliseconds(50)});
  const auto response = exchange(transport, server_.request());
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, std::errc::timed_out) << response.error().message;
}

TEST_F(HttpTransportTest, BodyOverLimit_IsAnError) {
  for (const std::string& body : {std::string("Content-Length: 99999999999\r\n\r\nabc"),
                                  "Transfer-Encoding: chunked\r\n\r\n1000\r\n" + std::string(0x1000, ' ')}) {
    const auto response = get({"HTTP/1.1 200 OK\r\n" + body}, {.body_bytes_max = 1000})[0];
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, std::errc::message_size) << body.substr(0, 30);
    EXPECT_THAT(response.error().message, HasSubstr("larger than the limit of 1000 bytes"));
  }
}

// Some proxies add much.
TEST_F(HttpTransportTest, LongHead_IsReadUpToTheLimit) {
  for (const auto& [bytes, is_read] : {std::pair{60'000U, true}, {70'000U, false}}) {
    const std::string head = "HTTP/1.1 200 OK\r\nX: " + std::string(bytes, 'x');
    EXPECT_EQ(
        get({head + "\r\nContent-Length: 2\r\n\r\nok"}, {.timeout = std::chrono::seconds(60)})[0].has_value(),
        is_read)
        << bytes;
  }
}

// What did not read the whole request cannot have done it.
TEST_F(HttpTransportTest, SuccessBeforeTheRequestIsSent_IsAnError) {
  const support::TempDirectory directory;
  const support::ListeningSocket socket(directory / "s");
  for (const auto& [response, is_taken] :
       {std::pair{ok, false}, {std::string("HTTP/1.1 413 Oh\r\nContent-Length: 0\r\n\r\n"), true}}) {
    const std::jthread serving([&] {
      const int connection = ::accept(socket.fd(), nullptr, nullptr);
      ::shutdown(connection, SHUT_RD);
      std::string buffer(1 << 20, '\0');
      while (::read(connection, buffer.data(), buffer.size()) > 0) {  // makes room for the write that fails
      }
      EXPECT_GT(::write(connection, response.data(), response.size()), 0);
      pollfd closed{connection, 0, 0};
      ::poll(&closed, 1, -1);
      ::close(connection);
    });
    HttpTransport transport({});
    const auto result = exchange(
        transport, {{{}, 0, directory / "s"}, "POST", "/", {}, std::string(std::size_t{16} << 20U, 'x')});
    EXPECT_EQ(result.has_value(), is_taken);
  }
}

TEST_F(HttpTransportTest, GarbageResponse_IsAnError) { EXPECT_FALSE(get({"220 smtp.example ESMTP\r\n"})[0]); }

TEST_F(HttpTransportTest, SlowFailingPeer_DoesNotDelayOthers) {
  Server silent;
  const std::jthread serving = server_.respond_each({ok});
  std::promise<void> other_answered;
  const std::jthread late([&] {
    other_answered.get_future().wait();
    silent.respond({""});
  });
  HttpTransport transport({});
  const HttpRequest requests[] = {silent.request(), server_.request()};
  std::vector<std::size_t> order;
  transport.exchange(requests, [&](std::size_t index, const base::Result<HttpResponse>& response) {
    order.push_back(index);
    EXPECT_EQ(response.has_value(), index == 1);
    if (index == 1) other_answered.set_value();
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{1, 0})) << "side by side: the quick one does not wait";
}

TEST_F(HttpTransportTest, RequestsOverConcurrencyLimit_AllComplete) {
  const std::jthread serving = server_.respond_each({ok, ok, ok, ok, ok});
  HttpTransport transport({.concurrent_max = 2});
  for (const auto& response : get_all(transport, std::vector<HttpRequest>(5, server_.request())))
    EXPECT_EQ(response.value().body, "ok");
}

// An interim response is not the response, and the one to this request not that to the next.
TEST_F(HttpTransportTest, KeepAliveConnection_IsReusedAndInterimResponsesAreSkipped) {
  const std::string interim = "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n";
  const std::jthread serving([&] { server_.respond({ok, interim + ok, interim + unavailable}); });
  HttpTransport transport({.attempts_max = 1});
  for (const unsigned status : {200U, 200U, 503U})
    EXPECT_EQ(exchange(transport, server_.request()).value().status, status);
}

TEST_F(HttpTransportTest, ConnectionClosedByServer_IsReplaced) {
  const std::string last = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
  for (const std::string& response : {ok, last}) {
    for (const auto& result : get({response, response, response}, {}, 3))
      EXPECT_TRUE(result) << result.error().message;
  }
}

TEST_F(HttpTransportTest, HangUpOrStatus503_IsRetriedUpToLimit) {
  EXPECT_EQ(get({"", unavailable, ok}, {.attempts_max = 3})[0].value().status, 200U);
  EXPECT_EQ(get({unavailable, unavailable, unavailable}, {.attempts_max = 3})[0].value().status, 503U)
      << "the last answer is the answer";
  EXPECT_EQ(get({"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno"}, {.attempts_max = 3})[0].value().status,
            500U)
      << "is not retried";
}

TEST_F(HttpTransportTest, TotalTimeout_FailsAllRequests) {
  HttpTransport transport({.timeout = std::chrono::hours(1),
                           .total_timeout = std::chrono::milliseconds(50),
                           .concurrent_max = 1});
  for (const auto& response : get_all(transport, std::vector<HttpRequest>(3, server_.request()))) {
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, std::errc::timed_out) << response.error().message;
  }
}

TEST_F(HttpTransportTest, Stop_FailsAllRequestsWithoutAResponse) {
  std::stop_source stop;
  HttpTransport transport({.timeout = std::chrono::hours(1), .concurrent_max = 2, .stop = stop.get_token()});
  const auto errors = [&] {
    std::vector<std::error_code> codes;
    for (const auto& response : get_all(transport, std::vector<HttpRequest>(3, server_.request())))
      codes.push_back(response.has_error() ? response.error().code : std::error_code());
    return codes;
  };
  auto under_way = std::async(std::launch::async, errors);
  server_.take_a_request();
  stop.request_stop();
  EXPECT_THAT(under_way.get(), Each(std::make_error_code(std::errc::operation_canceled)));
  EXPECT_THAT(errors(), Each(std::make_error_code(std::errc::operation_canceled))) << "after the stop";
}

TEST_F(HttpTransportTest, BodiesOverTotalMemoryLimit_AreErrors) {
  const auto results = get({"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + std::string(2000, 'x'), ok},
                           {.bodies_bytes_max = 1000}, 2);
  EXPECT_FALSE(results[0]);
  EXPECT_TRUE(results[1]) << "what was held is free again";
}

TEST_F(HttpTransportTest, Token_IsSentToTrustedUrlsAloneAndTheErrorSaysSo) {
  const std::string refused = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno";
  const auto get_with = [&](const std::string& trusted) {
    const Credentials credentials{.token = "secret", .tls = nullptr, .trusted_urls = {{trusted}}};
    return get({refused}, {.credentials = credentials})[0].value();
  };
  const auto withheld = get_with("http://other:7420");
  EXPECT_THAT(server_.received(), Not(HasSubstr("secret")));
  EXPECT_EQ(withheld.status, 401U) << "it lives, for all that";
  EXPECT_THAT(problem_detail(withheld), HasSubstr("peers.static"));
  EXPECT_EQ(get_with(server_.endpoint().to_string()).status, 401U);
  EXPECT_THAT(server_.received(), HasSubstr("Bearer secret"));
}

TEST(ProblemDetailTest, UntrustedText_IsEscapedAndTruncated) {
  EXPECT_EQ(problem_detail({400, {}, R"({"detail":"a\n2026-01-01 \u001b[2J"})"}),
            "a\\x0a2026-01-01 \\x1b[2J");
  EXPECT_LT(problem_detail({400, {}, R"({"detail":")" + std::string(60'000, 'x') + "\"}"}).size(), 600U);
}

TEST(CredentialsTest, TlsWithOwnCa_ReceivesToken) {
  base::Endpoint endpoint{"a", 7420, {}};
  endpoint.is_tls = true;
  Credentials credentials{.token = "secret", .tls = nullptr, .trusted_urls = std::set<std::string>()};
  EXPECT_FALSE(credentials.sends_token_to(endpoint)) << "an authority of the system vouches for anybody";
  credentials.has_own_ca = true;
  EXPECT_TRUE(credentials.sends_token_to(endpoint));
  endpoint.is_tls = false;
  EXPECT_FALSE(credentials.sends_token_to(endpoint));
  EXPECT_TRUE(credentials.sends_token_to({{}, 0, "/run/spoor.sock"}));
  credentials.trusted_urls.reset();
  EXPECT_TRUE(credentials.sends_token_to(endpoint)) << "peers.token_to_all";
}

TEST(SendMarksTest, AnyPathOfTheBatchThatIsAbsolute_IsSentAsThat) {
  using namespace std::string_literals;
  std::string target;
  fakes::AnsweringTransport transport([&](const HttpRequest& request) {
    target = request.target;
    return HttpResponse{200, {}, {}};
  });
  const auto is_absolute = [&](const std::string& paths) {
    send_marks(transport, {"a", 7420, {}}, "file", paths);
    return target.ends_with("&absolute=true");
  };
  EXPECT_TRUE(is_absolute("/srv/a\0b/c\0"s));
  EXPECT_TRUE(is_absolute("b/c\0/srv/a\0"s));
  EXPECT_FALSE(is_absolute("b/c\0d/e\0"s)) << "earlier daemons do not know it";
}

TEST(SendMarksTest, RefusalThatMayPass_IsRetried) {
  for (const auto& [status, may_retry] : {std::pair(500U, true),
                                          {503U, true},
                                          {599U, true},
                                          {408U, true},
                                          {400U, false},
                                          {403U, false},
                                          {413U, false}}) {
    fakes::AnsweringTransport transport(
        [&](const HttpRequest&) { return HttpResponse{.status = status, .content_type = {}, .body = {}}; });
    const MarkReply reply = send_marks(transport, {"a", 7420, {}}, "dir", std::string("b/a", 4));
    EXPECT_FALSE(reply.is_acknowledged) << status;
    EXPECT_EQ(reply.may_retry, may_retry) << status;
    EXPECT_EQ(reply.is_too_large, status == 413) << status;
  }
}

}  // namespace
}  // namespace spoor::peer
