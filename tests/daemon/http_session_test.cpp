// One connection, driven step by step: nothing happens but what the test lets happen.
#include "daemon/http/http_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include "daemon/process/task.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using testing::HasSubstr;
using testing::StartsWith;
using Socket = asio::local::stream_protocol::socket;

class HttpSessionTest : public testing::Test {
 protected:
  HttpSessionTest() {
    sessions_->service.handle = [](const HttpRequest& request) -> asio::awaitable<HttpResponse> {
      HttpResponse response;
      response.body = request.path;
      co_return response;
    };
    sessions_->limits.idle_max = std::chrono::hours(1);
    sessions_->limits.request_max = std::chrono::hours(1);
  }

  void refuse_all() {
    sessions_->service.admit = [](const HttpRequest& /*request*/) -> std::optional<HttpResponse> {
      return to_response({401, "unauthorized", "say who you are"});
    };
  }

  void connect() {
    Socket server(context_);
    client_ = Socket(context_);
    asio::local::connect_pair(client_, server);
    client_.non_blocking(true);
    auto place = std::make_unique<HttpPlace>(sessions_->places, Caller{}, server.native_handle());
    place->serve(1, std::chrono::hours(1));
    session_ = std::make_shared<HttpSession>(sessions_, std::move(place),
                                             HttpSession::Socket(std::move(server)), Caller{}, nullptr);
    asio::co_spawn(context_, session_->run(), [this](const std::exception_ptr& failure) {
      rethrow(failure);
      is_over_ = true;
    });
    settle();
  }

  // Lets one more connection in where there is room for one.
  bool evict() {
    HttpPlace newcomer(sessions_->places, Caller{}, -1);
    const bool is_served = newcomer.serve(1, std::chrono::milliseconds(0));
    settle();
    return is_served;
  }

  // Until the session waits for its client, or has ended.
  void settle() {
    context_.restart();
    context_.poll();
  }

  void send(const std::string& bytes) {
    client_.send(asio::buffer(bytes));
    settle();
  }

  // The same request again and again, until the session ends or takes no more; nothing of its answers is
  // read.
  void send_without_reading(const std::string& request) {
    boost::system::error_code error;
    while (!is_over_ && !error) {
      client_.send(asio::buffer(request), 0, error);
      settle();
    }
  }

  std::string received() {
    std::array<char, 4096> bytes{};
    boost::system::error_code error;
    std::string all;
    while (const std::size_t size = client_.receive(asio::buffer(bytes), 0, error))
      all.append(bytes.data(), size);
    return all;
  }

  asio::io_context context_{1};
  const std::shared_ptr<HttpTotals> totals_ = std::make_shared<HttpTotals>();
  const std::shared_ptr<HttpSessions> sessions_ = std::make_shared<HttpSessions>(totals_);
  Socket client_{context_};
  std::shared_ptr<HttpSession> session_;
  bool is_over_ = false;
};

// A hundred such clients held all places there are, until a timeout of 30 s for each answer.
TEST_F(HttpSessionTest, RefusalThatCannotBeWritten_ClosesTheConnection) {
  refuse_all();
  connect();
  send_without_reading("POST /v1/marks HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\na");
  EXPECT_TRUE(is_over_);
  EXPECT_THAT(received(), StartsWith("HTTP/1.1 401 "));
}

TEST_F(HttpSessionTest, RefusalsThatAreRead_KeepTheConnection) {
  refuse_all();
  connect();
  for (int i = 0; i < 1000; ++i) {
    send("GET /v1/status HTTP/1.1\r\nHost: h\r\n\r\n");
    ASSERT_THAT(received(), StartsWith("HTTP/1.1 401 ")) << i;
  }
  EXPECT_FALSE(is_over_);
}

// An answer that is no refusal may be waited for, but not while others find no place.
TEST_F(HttpSessionTest, ResponseThatIsNotRead_ConnectionCanBeEvicted) {
  connect();
  send_without_reading("GET /v1/status HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_FALSE(is_over_);
  EXPECT_TRUE(evict());
  EXPECT_TRUE(is_over_);
}

// A body was read for 30 s, whoever waited.
TEST_F(HttpSessionTest, IncompleteRequest_ConnectionCanBeEvicted) {
  for (const std::string part : {"", "GET /", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\na",
                                 "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n"}) {
    is_over_ = false;
    connect();
    send(part);
    EXPECT_FALSE(is_over_);
    EXPECT_TRUE(evict()) << part;
    EXPECT_TRUE(is_over_) << part;
    EXPECT_EQ(received(), "") << part;
    session_.reset();
    EXPECT_EQ(sessions_->places.body_bytes(), 0U);
  }
}

// For 2 s, the end of a connection that was refused before its body waited for its client.
TEST_F(HttpSessionTest, ClientThatDoesNotClose_ConnectionCanBeEvicted) {
  refuse_all();
  connect();
  send("POST /v1/marks HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\na");
  EXPECT_THAT(received(), StartsWith("HTTP/1.1 401 "));
  EXPECT_FALSE(is_over_);
  EXPECT_TRUE(evict());
  EXPECT_TRUE(is_over_);
}

TEST_F(HttpSessionTest, RequestThatIsHandled_ConnectionIsNotEvicted) {
  asio::steady_timer gate(context_, std::chrono::hours(1));
  sessions_->service.handle = [&gate](const HttpRequest&) -> asio::awaitable<HttpResponse> {
    co_await gate.async_wait(as_result);
    HttpResponse response;
    response.body = "handled";
    co_return response;
  };
  connect();
  send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_FALSE(evict());
  gate.cancel();
  settle();
  EXPECT_THAT(received(), HasSubstr("handled"));
  EXPECT_FALSE(is_over_);
  EXPECT_TRUE(evict()) << "it is idle now";
}

// Its memory is used until it is handled.
TEST_F(HttpSessionTest, BodyBeyondTheMemoryOfAll_Is503) {
  sessions_->limits.bodies_bytes_max = 100'000;
  HttpPlace other(sessions_->places, Caller{.address = "10.0.0.1"}, -1);
  const auto can_hold = [&](std::uint64_t bytes) { return other.hold_body(bytes, 0, 100'000); };
  asio::steady_timer gate(context_, std::chrono::hours(1));
  sessions_->service.handle = [&gate](const HttpRequest& request) -> asio::awaitable<HttpResponse> {
    co_await gate.async_wait(as_result);
    HttpResponse response;
    response.body = "handled " + request.path + std::string(request.path == "/large" ? 1'000'000 : 0, '.');
    co_return response;
  };
  const auto post = [](const std::string& path, std::size_t bytes) {
    return "POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n" +
           std::string(bytes, 'x');
  };
  connect();
  send(post("/large", 60'000));
  EXPECT_FALSE(can_hold(60'000)) << "it is being handled";
  gate.cancel();
  settle();
  EXPECT_TRUE(can_hold(60'000)) << "the client need not have read the response";
  std::string answer;
  for (std::string part = received(); !part.empty(); part = received()) {
    answer += part;
    settle();
  }
  EXPECT_THAT(answer, HasSubstr("handled /large"));
  send(post("/small", 10'000));
  gate.cancel();
  settle();
  EXPECT_THAT(received(), HasSubstr("handled /small")) << "a small one is never refused";
  send(post("/refused", 60'000));
  EXPECT_THAT(received(), StartsWith("HTTP/1.1 503 "));
}

// RFC 9110, section 10.1.1: HTTP/1.0 knows no such answer, and would take it for that to its request.
TEST_F(HttpSessionTest, Expect_GetsA100InHttp11Only) {
  for (const std::string version : {"1.0", "1.1"}) {
    is_over_ = false;
    connect();
    send("POST /here HTTP/" + version +
         "\r\nHost: h\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    EXPECT_EQ(received(), version == "1.1" ? "HTTP/1.1 100 Continue\r\n\r\n" : "");
    send("abc");
    EXPECT_THAT(received(), HasSubstr("/here"));
    EXPECT_TRUE(is_over_);
    session_.reset();
  }
}

}  // namespace
}  // namespace spoor::daemon
