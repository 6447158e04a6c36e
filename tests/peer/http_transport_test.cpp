#include "peer/http/http_transport.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/loopback.h"

namespace spoor::peer {
namespace {

// A listening socket on loopback, which does nothing by itself.
class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, support::own_loopback().c_str(), &address.sin_addr);
    socklen_t size = sizeof(address);
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(fd_, plain, size), 0);
    EXPECT_EQ(::listen(fd_, 8), 0);
    EXPECT_EQ(::getsockname(fd_, plain, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { ::close(fd_); }

  base::Endpoint endpoint() const { return {support::own_loopback(), port_, {}}; }

  // Takes one connection, reads a little, which is given, and sends `answer`.
  std::string answer_once(const std::string& answer) const { return answer_on_one_connection({answer}); }

  // Takes one connection; sends an answer for each request that comes over it. Gives what was read.
  std::string answer_on_one_connection(const std::vector<std::string>& answers) const {
    std::string requests;
    const int connection = ::accept(fd_, nullptr, nullptr);
    for (const std::string& answer : answers) {
      char buffer[1024];
      const ssize_t got = ::read(connection, buffer, sizeof(buffer));
      EXPECT_GT(got, 0);
      requests.append(buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      EXPECT_EQ(::write(connection, answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
    }
    ::close(connection);
    return requests;
  }

  // Takes one connection, reads a little, and keeps it open.
  void take_a_request() const {
    const int connection = ::accept(fd_, nullptr, nullptr);
    char buffer[1024];
    EXPECT_GT(::read(connection, buffer, sizeof(buffer)), 0);
  }

  // Takes one connection and closes it without an answer.
  void hang_up_once() const {
    const int connection = ::accept(fd_, nullptr, nullptr);
    char buffer[1024];
    EXPECT_GT(::read(connection, buffer, sizeof(buffer)), 0);
    ::close(connection);
  }

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const std::string unavailable = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nno";

TEST(HttpTransportTest, Response_HasStatusTypeAndBody) {
  const Listener listener;
  const std::jthread server([&] {
    listener.answer_once("HTTP/1.1 418 I'm a teapot\r\nContent-Type: text/x\r\nContent-Length: 3\r\n\r\nabc");
  });
  HttpTransport transport({});
  const auto response = exchange(transport, {listener.endpoint(), "GET", "/", {}, {}});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 418U);
  EXPECT_EQ(response->content_type, "text/x");
  EXPECT_EQ(response->body, "abc");
}

TEST(HttpTransportTest, ServerNeverResponds_IsATimeout) {
  const Listener silent;
  HttpTransport transport({.timeout = std::chrono::milliseconds(50)});
  const auto response = exchange(transport, {silent.endpoint(), "GET", "/", {}, {}});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, std::errc::timed_out) << response.error().message;
}

TEST(HttpTransportTest, ConnectionRefused_ErrorNamesEndpoint) {
  base::Endpoint nobody;
  {
    const Listener gone;
    nobody = gone.endpoint();
  }
  HttpTransport transport({});
  const auto response = exchange(transport, {nobody, "GET", "/", {}, {}});
  ASSERT_FALSE(response);
  EXPECT_NE(response.error().message.find(nobody.to_string()), std::string::npos) << response.error().message;
}

TEST(HttpTransportTest, BodyOverLimit_IsAnError) {
  const Listener listener;
  const std::jthread server(
      [&] { listener.answer_once("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nabc"); });
  HttpTransport transport({.body_bytes_max = 1000});
  const auto response = exchange(transport, {listener.endpoint(), "GET", "/", {}, {}});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, std::errc::message_size);
  EXPECT_NE(response.error().message.find("larger than the limit of 1000 bytes"), std::string::npos);
}

// Some proxies add much.
TEST(HttpTransportTest, LongHead_IsReadUpToTheLimit) {
  for (const auto& [bytes, is_read] : {std::pair{60'000U, true}, {70'000U, false}}) {
    const Listener listener;
    const std::jthread server([&] {
      listener.answer_once("HTTP/1.1 200 OK\r\nX: " + std::string(bytes, 'x') +
                           "\r\nContent-Length: 2\r\n\r\nok");
    });
    HttpTransport transport({.timeout = std::chrono::seconds(60)});
    EXPECT_EQ(exchange(transport, {listener.endpoint(), "GET", "/", {}, {}}).has_value(), is_read) << bytes;
  }
}

TEST(ProblemDetailTest, UntrustedText_IsEscapedAndTruncated) {
  EXPECT_EQ(problem_detail({400, {}, R"({"detail":"a\n2026-01-01 \u001b[2J"})"}),
            "a\\x0a2026-01-01 \\x1b[2J");
  EXPECT_LT(problem_detail({400, {}, R"({"detail":")" + std::string(60'000, 'x') + "\"}"}).size(), 600U);
}

class TokenTest : public testing::Test {
 protected:
  // What is sent to a server that asks for a token, and what comes of it.
  std::string sent(const Credentials& credentials) {
    std::string request;
    const std::jthread server(
        [&] { request = listener_.answer_once("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno"); });
    HttpTransport transport({.credentials = credentials});
    response_ = exchange(transport, {listener_.endpoint(), "GET", "/", {}, {}});
    return request;
  }

  const Listener listener_;
  base::Result<HttpResponse> response_ = HttpResponse{};
};

TEST_F(TokenTest, TrustedUrl_ReceivesToken) {
  const auto request = [&] {
    return sent({.token = "secret", .tls = nullptr, .trusted_urls = {{listener_.endpoint().to_string()}}});
  };
  EXPECT_NE(request().find("Bearer secret"), std::string::npos);
  EXPECT_EQ(response_->status, 401U);
}

TEST_F(TokenTest, UrlKnownOnlyFromEtcd_ReceivesNoTokenAndErrorSaysSo) {
  const auto request = [&] {
    return sent({.token = "secret", .tls = nullptr, .trusted_urls = {{"http://other:7420"}}});
  };
  EXPECT_EQ(request().find("secret"), std::string::npos);
  EXPECT_EQ(response_->status, 401U) << "it lives, for all that";
  EXPECT_NE(problem_detail(*response_).find("peers.static"), std::string::npos) << problem_detail(*response_);
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

TEST(HttpTransportTest, GarbageResponse_IsAnError) {
  const Listener listener;
  const std::jthread server([&] { listener.answer_once("220 smtp.example ESMTP\r\n"); });
  HttpTransport transport({});
  EXPECT_FALSE(exchange(transport, {listener.endpoint(), "GET", "/", {}, {}}));
}

TEST(HttpTransportTest, SlowFailingPeer_DoesNotDelayOthers) {
  const Listener silent;
  const Listener listener;
  const std::jthread server([&] { listener.answer_once("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); });
  std::promise<void> other_answered;
  const std::jthread late([&] {
    other_answered.get_future().wait();
    silent.hang_up_once();
  });
  HttpTransport transport({});
  const HttpRequest requests[] = {{silent.endpoint(), "GET", "/", {}, {}},
                                  {listener.endpoint(), "GET", "/", {}, {}}};
  std::vector<std::size_t> order;
  transport.exchange(requests, [&](std::size_t index, const base::Result<HttpResponse>& response) {
    order.push_back(index);
    EXPECT_EQ(response.has_value(), index == 1);
    if (index == 1) other_answered.set_value();
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{1, 0})) << "side by side: the quick one does not wait";
}

TEST(HttpTransportTest, RequestsOverConcurrencyLimit_AllComplete) {
  const Listener listener;
  const std::jthread server([&] {
    for (int i = 0; i < 5; ++i) listener.answer_once("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  });
  HttpTransport transport({.concurrent_max = 2});
  const std::vector<HttpRequest> requests(5, {listener.endpoint(), "GET", "/", {}, {}});
  int answers = 0;
  transport.exchange(requests, [&](std::size_t, const base::Result<HttpResponse>& response) {
    answers += response.has_value() ? 1 : 0;
  });
  EXPECT_EQ(answers, 5);
}

TEST(HttpTransportTest, KeepAliveConnection_IsReused) {
  const Listener listener;
  const std::jthread server([&] { listener.answer_on_one_connection({ok, ok, ok}); });
  HttpTransport transport({});
  for (int i = 0; i < 3; ++i) {
    const auto response = exchange(transport, {listener.endpoint(), "GET", "/", {}, {}});
    ASSERT_TRUE(response) << response.error().message;
  }
}

// An interim response is not the response, and the one to this request not that to the next.
TEST(HttpTransportTest, InterimResponses_AreSkipped) {
  const Listener listener;
  const std::string interim = "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n";
  const std::jthread server(
      [&] { listener.answer_on_one_connection({interim + ok, interim + unavailable}); });
  HttpTransport transport({.attempts_max = 1});
  EXPECT_EQ(exchange(transport, {listener.endpoint(), "GET", "/", {}, {}}).value().status, 200U);
  EXPECT_EQ(exchange(transport, {listener.endpoint(), "GET", "/", {}, {}}).value().status, 503U);
}

TEST(HttpTransportTest, ConnectionClosedByServer_IsReplaced) {
  const Listener listener;
  const std::jthread server([&] {
    for (int i = 0; i < 3; ++i) listener.answer_once(ok);
  });
  HttpTransport transport({});
  for (int i = 0; i < 3; ++i) {
    const auto response = exchange(transport, {listener.endpoint(), "GET", "/", {}, {}});
    ASSERT_TRUE(response) << response.error().message;
  }
}

TEST(HttpTransportTest, ConnectionCloseHeader_ConnectionIsNotReused) {
  const Listener listener;
  const std::jthread server([&] {
    const std::string last = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    for (int i = 0; i < 2; ++i) listener.answer_once(last);
  });
  HttpTransport transport({});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(exchange(transport, {listener.endpoint(), "GET", "/", {}, {}}));
}

TEST(HttpTransportTest, HangUpOrStatus503_IsRetried) {
  const Listener listener;
  const std::jthread server([&] {
    listener.hang_up_once();
    listener.answer_once(unavailable);
    listener.answer_once(ok);
  });
  HttpTransport transport({.attempts_max = 3});
  const auto response = exchange(transport, {listener.endpoint(), "GET", "/", {}, {}});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 200U);
}

TEST(HttpTransportTest, PersistentStatus503_IsRetriedUpToLimit) {
  const Listener listener;
  const std::jthread server([&] {
    for (int i = 0; i < 3; ++i) listener.answer_once(unavailable);
  });
  HttpTransport transport({.attempts_max = 3});
  const auto response = exchange(transport, {listener.endpoint(), "GET", "/", {}, {}});
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 503U) << "the last answer is the answer";
}

TEST(HttpTransportTest, Status500_IsReturnedWithoutRetry) {
  const Listener listener;
  const std::jthread server([&] { listener.answer_once("HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno"); });
  HttpTransport transport({.attempts_max = 3});
  EXPECT_EQ(exchange(transport, {listener.endpoint(), "GET", "/", {}, {}})->status, 500U);
}

TEST(HttpTransportTest, TotalTimeout_FailsAllRequests) {
  const Listener silent;
  HttpTransport transport({.timeout = std::chrono::hours(1),
                           .total_timeout = std::chrono::milliseconds(50),
                           .concurrent_max = 1});
  const std::vector<HttpRequest> requests(3, {silent.endpoint(), "GET", "/", {}, {}});
  int failures = 0;
  transport.exchange(requests, [&](std::size_t, const base::Result<HttpResponse>& response) {
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, std::errc::timed_out) << response.error().message;
    ++failures;
  });
  EXPECT_EQ(failures, 3);
}

TEST(HttpTransportTest, Stop_FailsAllRequestsWithoutAResponse) {
  const Listener silent;
  std::stop_source stop;
  HttpTransport transport({.timeout = std::chrono::hours(1), .concurrent_max = 2, .stop = stop.get_token()});
  const std::vector<HttpRequest> requests(3, HttpRequest{silent.endpoint(), "GET", "/", {}, {}});
  const auto exchange = [&] {
    std::vector<std::error_code> errors(requests.size());
    transport.exchange(requests, [&](std::size_t index, const base::Result<HttpResponse>& response) {
      ASSERT_FALSE(response);
      errors[index] = response.error().code;
    });
    return errors;
  };
  auto under_way = std::async(std::launch::async, exchange);
  silent.take_a_request();
  stop.request_stop();
  const std::vector<std::error_code> all(3, std::make_error_code(std::errc::operation_canceled));
  EXPECT_EQ(under_way.get(), all);
  EXPECT_EQ(exchange(), all) << "after the stop";
}

TEST(HttpTransportTest, BodiesOverTotalMemoryLimit_AreErrors) {
  const Listener listener;
  const std::jthread server([&] {
    listener.answer_once("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + std::string(2000, 'x'));
    listener.answer_once(ok);
  });
  HttpTransport transport({.bodies_bytes_max = 1000});
  EXPECT_FALSE(exchange(transport, {listener.endpoint(), "GET", "/", {}, {}}));
  EXPECT_TRUE(exchange(transport, {listener.endpoint(), "GET", "/", {}, {}}))
      << "what was held is free again";
}

TEST(HttpTransportTest, ResponseWithoutContentLength_EndsWithConnection) {
  const Listener listener;
  const std::jthread server([&] { listener.answer_once("HTTP/1.1 200 OK\r\n\r\nuntil the end"); });
  HttpTransport transport({});
  EXPECT_EQ(exchange(transport, {listener.endpoint(), "GET", "/", {}, {}})->body, "until the end");
}

}  // namespace
}  // namespace spoor::peer
