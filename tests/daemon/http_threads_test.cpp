// A server whose connections are served on several threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <list>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "daemon/http/http_server.h"
#include "daemon/http/serving_threads.h"
#include "tests/support/loopback.h"
#include "tests/support/raw_client.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using support::RawClient;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

const std::string get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

std::string thread_name() {
  std::ostringstream text;
  text << "thread " << std::this_thread::get_id() << '.';
  return text.str();
}

asio::awaitable<HttpResponse> tell_thread(const HttpRequest& /*request*/) {
  HttpResponse response;
  response.body = thread_name();
  co_return response;
}

class HttpThreadsTest : public testing::Test {
 protected:
  static constexpr std::size_t threads = 3;
  static constexpr std::chrono::hours never{1};

  // Nothing ends because time passes.
  static HttpLimits without_deadlines(HttpLimits limits) {
    limits.idle_max = never;
    limits.request_max = never;
    limits.grace_max = never;
    limits.first_max = never;
    return limits;
  }

  void start(const HttpService::Handler& handler, const HttpLimits& limits = {}) {
    server_.emplace(context_, without_deadlines(limits), serving_.others());
    const auto url = server_->listen(HttpServer::TcpListener{.address = support::own_loopback()});
    port_ = static_cast<std::uint16_t>(std::stoi(url.value().substr(url->rfind(':') + 1)));
    server_->start({.handle = handler});
    thread_ = std::jthread([this] {
      serving_.run(context_);
      has_ended_.set_value();
    });
  }

  void stop() {
    asio::post(context_, [this] { server_->stop(); });
  }

  // Connections that were accepted, as many as there are threads, each with its first answer.
  std::list<RawClient> one_on_each() {
    std::list<RawClient> clients;
    std::set<std::string> names;
    for (std::size_t i = 0; i < threads; ++i) {
      clients.emplace_back(port_).send(get);
      const std::string answer = clients.back().receive_until(".");
      names.insert(answer.substr(answer.find("thread ")));
    }
    EXPECT_EQ(names.size(), threads) << "in turn";
    return clients;
  }

  // Until the thread has done what it has to do, and what follows from that: a client may have its answer
  // before its connection waits for the next request.
  static void settle(asio::io_context& thread) {
    constexpr int steps = 20;
    for (int i = 0; i < steps; ++i) asio::post(thread, asio::use_future).wait();
  }

  asio::io_context context_{1};
  ServingThreads serving_{threads};
  std::optional<HttpServer> server_;
  std::uint16_t port_ = 0;
  std::promise<void> has_ended_;
  std::jthread thread_;
};

TEST(ServingThreadsTest, ZeroThreads_MeansOnePerProcessor) {
  EXPECT_EQ(ServingThreads(0).others().size() + 1, std::max(std::thread::hardware_concurrency(), 1U));
  EXPECT_TRUE(ServingThreads(1).others().empty());
}

TEST_F(HttpThreadsTest, Connections_AreSpreadOverThreadsAndEndAtAStop) {
  start(tell_thread);
  auto clients = one_on_each();
  EXPECT_EQ(server_->totals().places->open(), threads);
  EXPECT_EQ(server_->totals().accepted, threads);
  stop();
  for (RawClient& client : clients) EXPECT_THAT(client.receive_all(), EndsWith("."));
  has_ended_.get_future().wait();
  EXPECT_EQ(server_->totals().places->open(), 0U);
}

TEST_F(HttpThreadsTest, ConnectionLimit_AppliesToAllThreadsTogether) {
  start(tell_thread, {.connections_max = threads, .yield_after = never});
  auto clients = one_on_each();
  for (std::size_t i = 0; i < 2 * threads; ++i) {
    RawClient further(port_);
    further.send(get);
    EXPECT_THAT(further.receive_all(), StartsWith("HTTP/1.1 503 "));
  }
  for (RawClient& client : clients) client.send(get);
  for (RawClient& client : clients)
    EXPECT_THAT(client.receive_until(".HTTP/1.1 200 OK"), HasSubstr(".HTTP/1.1 200 OK"));
  EXPECT_EQ(server_->totals().refused, 2 * threads);
  stop();
}

// Whoever came to a thread without idle connections was refused. The thread of the idle one may be busy.
TEST_F(HttpThreadsTest, ConnectionLimitReached_EvictsAnIdleConnectionOfAnotherThread) {
  start(tell_thread, {.connections_max = 1, .yield_after = std::chrono::milliseconds(0)});
  {
    RawClient on_main(port_);
    on_main.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(on_main.receive_all(), EndsWith("."));
  }
  while (server_->totals().places->open() > 0) std::this_thread::yield();
  RawClient idle(port_);  // on the second thread
  idle.send(get);
  idle.receive_until(".");
  asio::io_context& second = *serving_.others().front();
  settle(second);
  std::promise<void> go_on;
  asio::post(second, [blocked = go_on.get_future().share()] { blocked.wait(); });
  RawClient next(port_);
  next.send(get);
  EXPECT_THAT(next.receive_until("."), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(idle.receive_all(), EndsWith(".")) << "it was ended";
  go_on.set_value();
  stop();
}

// Evictions on all threads at any time: in a header, in a body, between requests.
TEST_F(HttpThreadsTest, OneAddressTakesAllConnections_OthersAreServed) {
  start(tell_thread, {.connections_max = 8, .yield_after = std::chrono::milliseconds(0)});
  std::atomic<bool> is_over = false;
  std::list<std::jthread> floods;
  for (const std::string part :
       {"", "GET / HT", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\na"}) {
    floods.emplace_back([&, part] {
      std::list<RawClient> clients;
      while (!is_over) {
        clients.emplace_back(port_).send(get);
        clients.back().receive_until(".");
        clients.back().send(part);
        if (clients.size() > 10) clients.pop_front();
      }
    });
  }
  while (server_->totals().places->open() < 8) std::this_thread::yield();
  RawClient kept(port_, "127.0.0.2");
  for (int i = 0; i < 100; ++i) {
    kept.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
    RawClient fresh(port_, "127.0.0.3");
    fresh.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(fresh.receive_all(), StartsWith("HTTP/1.1 200 "));
  }
  kept.send("GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  const std::string answers = kept.receive_all();
  EXPECT_THAT(answers, EndsWith("."));
  EXPECT_THAT(answers, testing::Not(HasSubstr(" 503 ")));
  is_over = true;
  floods.clear();
  stop();
}

// Those under way end with their answer, whichever thread they are on; and what they need of the main thread
// is there until then.
TEST_F(HttpThreadsTest, Stop_RequestsUnderWayOnAllThreads_AreAnswered) {
  asio::steady_timer gate(context_, never);
  std::promise<void> all_wait;
  std::atomic<std::size_t> waiting = 0;
  const auto wait_for_gate = [&]() -> asio::awaitable<void> {
    if (++waiting == threads) all_wait.set_value();
    co_await gate.async_wait(asio::as_tuple(asio::use_awaitable));
  };
  start([&](const HttpRequest& /*request*/) -> asio::awaitable<HttpResponse> {
    auto waited = asio::co_spawn(context_, wait_for_gate(), asio::use_awaitable);
    co_await std::move(waited);
    HttpResponse response;
    response.body = thread_name();
    co_return response;
  });
  std::list<RawClient> clients;
  for (std::size_t i = 0; i < threads; ++i) clients.emplace_back(port_).send(get);
  all_wait.get_future().wait();
  stop();
  asio::post(context_, [&] { gate.cancel(); });
  std::set<std::string> names;
  for (RawClient& client : clients) {
    const std::string answer = client.receive_all();
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
    names.insert(answer.substr(answer.find("thread ")));
  }
  EXPECT_EQ(names.size(), threads);
  has_ended_.get_future().wait();
}

// The main thread would have ended before, for want of connections of its own.
TEST_F(HttpThreadsTest, Stop_MainThread_ServesOtherThreadsUntilTheyEnd) {
  const auto tell_main = [&]() -> asio::awaitable<std::string> { co_return thread_name(); };
  start([&](const HttpRequest& /*request*/) -> asio::awaitable<HttpResponse> {
    auto told = asio::co_spawn(context_, tell_main(), asio::use_awaitable);
    HttpResponse response;
    response.body = co_await std::move(told);
    co_return response;
  });
  std::list<RawClient> clients;
  for (std::size_t i = 0; i < threads; ++i) clients.emplace_back(port_);
  while (server_->totals().places->open() < threads) std::this_thread::yield();
  stop();
  std::set<std::string> names;
  for (RawClient& client : clients) {
    client.send(get);
    const std::string answer = client.receive_all();
    names.insert(answer.substr(answer.find("thread ")));
  }
  EXPECT_EQ(names.size(), 1U);
  has_ended_.get_future().wait();
}

TEST_F(HttpThreadsTest, BodyMemoryLimit_AppliesToAllThreadsTogether) {
  std::mutex mutex;
  mutex.lock();
  std::promise<void> is_there;
  start(
      [&](const HttpRequest& request) -> asio::awaitable<HttpResponse> {
        if (request.path == "/wait") {
          is_there.set_value();
          const std::scoped_lock waiting(mutex);
        }
        HttpResponse response;
        response.body = request.path;
        co_return response;
      },
      {.bodies_bytes_max = 300'000});
  const auto post = [](const std::string& path) {
    return "POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n" +
           std::string(200'000, 'x');
  };
  RawClient idle(port_);  // on the main thread, which is not to wait
  RawClient first(port_);
  first.send(post("/wait"));
  is_there.get_future().wait();
  RawClient second(port_);
  second.send(post("/other"));
  EXPECT_THAT(second.receive_all(), StartsWith("HTTP/1.1 503 "));
  mutex.unlock();
  EXPECT_THAT(first.receive_until("/wait"), StartsWith("HTTP/1.1 200 "));
  stop();
}

TEST_F(HttpThreadsTest, SetLimits_AppliesToAllThreads) {
  start(tell_thread);
  auto clients = one_on_each();
  std::promise<void> is_set;
  asio::post(context_, [&] {
    server_->set_limits(
        without_deadlines({.body_bytes_max = 100, .bodies_bytes_max = 1000, .connections_max = 1000}));
    is_set.set_value();
  });
  is_set.get_future().wait();
  for (RawClient& client : clients) {
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 101\r\n\r\n");
    EXPECT_THAT(client.receive_all(), HasSubstr("HTTP/1.1 413 "));
  }
  stop();
}

}  // namespace
}  // namespace spoor::daemon
