// A server whose connections are served on several threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <future>
#include <list>
#include <set>
#include <sstream>
#include <thread>

#include "daemon/http/http_server.h"
#include "tests/support/loopback.h"
#include "tests/support/raw_client.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using support::RawClient;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kept_get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const std::string last_get = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

std::string thread_name() {
  std::ostringstream text;
  text << "thread " << std::this_thread::get_id() << '!';
  return text.str();
}

asio::awaitable<HttpResponse> tell_thread(const HttpRequest& /*request*/) {
  HttpResponse response;
  response.body = thread_name();
  co_return response;
}

std::string thread_in(const std::string& answer) { return answer.substr(answer.find("thread ")); }

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
    server_.emplace(context_, without_deadlines(limits), threads);
    const auto url = server_->listen(HttpServer::TcpListener{.address = support::own_loopback()});
    port_ = static_cast<std::uint16_t>(std::stoi(url.value().substr(url->rfind(':') + 1)));
    server_->start({.handle = handler});
    thread_ = std::jthread([this] {
      server_->run();
      has_ended_.set_value();
    });
  }

  void stop() {
    asio::post(context_, [this] { server_->stop(); });
  }

  bool can_connect() const {
    try {
      RawClient{port_};
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  }

  // A connection on each thread, with its first answer. Any thread may accept one, or refuse it.
  std::list<RawClient> one_on_each() {
    std::list<RawClient> clients;
    for (std::set<std::string> names; names.size() < threads;) {
      clients.emplace_back(port_).send(kept_get);
      const std::string answer = clients.back().receive_until("!");
      const bool is_new = answer.ends_with('!') && names.insert(thread_in(answer)).second;
      if (!is_new) clients.pop_back();
    }
    return clients;
  }

  asio::io_context context_{1};
  std::optional<HttpServer> server_;
  std::uint16_t port_ = 0;
  std::promise<void> has_ended_;
  std::jthread thread_;
};

TEST(HttpServerThreadsTest, ZeroThreads_MeansOnePerProcessor) {
  asio::io_context context;
  EXPECT_EQ(HttpServer(context, {}, 0).others().size() + 1,
            std::max(std::thread::hardware_concurrency(), 1U));
  EXPECT_TRUE(HttpServer(context, {}).others().empty());
}

// All together have no more than the limit, but for one connection and one body of the largest size each.
TEST(HttpServerThreadsTest, Limits_AreShared) {
  const HttpLimits limits{.body_bytes_max = 100, .bodies_bytes_max = 900, .connections_max = 10};
  for (const auto& [threads, connections, bodies] :
       {std::tuple(1U, 10U, 900U), std::tuple(3U, 3U, 300U), std::tuple(20U, 1U, 100U)}) {
    const HttpLimits share = share_of(limits, threads);
    EXPECT_EQ(share.connections_max, connections);
    EXPECT_EQ(share.bodies_bytes_max, bodies);
    EXPECT_EQ(share.body_bytes_max, 100U);
  }
  EXPECT_EQ(share_of({.body_bytes_max = 100, .bodies_bytes_max = 10}, 1).bodies_bytes_max, 10U) << "as it is";
}

TEST_F(HttpThreadsTest, Connections_OfAllThreads_EndAtAStop) {
  start(tell_thread);
  auto clients = one_on_each();
  EXPECT_GE(server_->totals().open, threads);
  EXPECT_GE(server_->totals().accepted, threads);
  stop();
  for (RawClient& client : clients) EXPECT_THAT(client.receive_all(), EndsWith("!"));
  has_ended_.get_future().wait();
  EXPECT_EQ(server_->totals().open, 0U);
}

// All together have no more than the limit.
TEST_F(HttpThreadsTest, ConnectionLimit_EachThreadHasItsShare) {
  start(tell_thread, {.connections_max = threads, .yield_after = never});
  auto clients = one_on_each();
  for (std::size_t i = 0; i < 2 * threads; ++i) {
    RawClient further(port_);
    further.send(kept_get);
    EXPECT_THAT(further.receive_all(), StartsWith("HTTP/1.1 503 "));
  }
  for (RawClient& client : clients) client.send(kept_get);
  for (RawClient& client : clients)
    EXPECT_THAT(client.receive_until("!HTTP/1.1 200 OK"), HasSubstr("!HTTP/1.1 200 OK"));
  EXPECT_GE(server_->totals().refused, 2 * threads);
  stop();
}

// The kernel gives a connection to the first thread that asks, and one that has its share is the quickest.
TEST_F(HttpThreadsTest, FewerConnectionsThanTheLimit_NoneIsRefused) {
  start(tell_thread, {.connections_max = 10 * threads, .yield_after = never});
  std::list<RawClient> clients;
  for (std::size_t i = 0; i < 9 * threads; ++i) {
    clients.emplace_back(port_).send(kept_get);
    EXPECT_THAT(clients.back().receive_until("!"), EndsWith("!"));
  }
  EXPECT_EQ(server_->totals().refused, 0U);
  stop();
}

// A thread that hangs delays its own connections, and no new ones.
TEST_F(HttpThreadsTest, ThreadHangs_OthersAccept) {
  start(tell_thread);
  std::promise<void> hangs;
  std::promise<void> go_on;
  asio::post(*server_->others().front(), [&, over = go_on.get_future().share()] {
    hangs.set_value();
    over.wait();
  });
  hangs.get_future().wait();
  for (int i = 0; i < 20; ++i) {
    RawClient client(port_);
    client.send(last_get);
    EXPECT_THAT(client.receive_all(), StartsWith("HTTP/1.1 200 "));
  }
  go_on.set_value();
  stop();
}

// Evictions on all threads at any time: in a header, in a body, between requests.
TEST_F(HttpThreadsTest, OneAddressTakesAllConnections_OthersAreServed) {
  start(tell_thread, {.connections_max = 8 * threads, .yield_after = std::chrono::milliseconds(0)});
  std::atomic<bool> is_over = false;
  std::list<std::jthread> floods;
  for (const std::string part :
       {"", "GET / HT", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\na"}) {
    floods.emplace_back([&, part] {
      std::list<RawClient> clients;
      while (!is_over) {
        clients.emplace_back(port_).send(kept_get);
        clients.back().receive_until("!");
        clients.back().send(part);
        if (clients.size() > 10) clients.pop_front();
      }
    });
  }
  while (server_->totals().open < 8) std::this_thread::yield();
  RawClient kept(port_, "127.0.0.2");
  for (int i = 0; i < 100; ++i) {
    kept.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
    RawClient fresh(port_, "127.0.0.3");
    fresh.send(last_get);
    EXPECT_THAT(fresh.receive_all(), StartsWith("HTTP/1.1 200 "));
  }
  kept.send(last_get);
  const std::string answers = kept.receive_all();
  EXPECT_THAT(answers, EndsWith("!"));
  EXPECT_THAT(answers, testing::Not(HasSubstr(" 503 ")));
  is_over = true;
  floods.clear();
  stop();
}

// Those under way end with their answer, whichever thread they are on; and the main thread, which they need
// for it and which would have ended before, is there until then.
TEST_F(HttpThreadsTest, Stop_RequestsUnderWayOnAllThreads_AreAnswered) {
  asio::steady_timer gate(context_, never);
  std::atomic<bool> is_gated = false;
  std::atomic<std::size_t> waiting = 0;
  const auto wait_for_gate = [&]() -> asio::awaitable<std::string> {
    ++waiting;
    waiting.notify_all();
    co_await gate.async_wait(asio::as_tuple(asio::use_awaitable));
    co_return thread_name();
  };
  std::string main_thread;
  start([&](const HttpRequest& /*request*/) -> asio::awaitable<HttpResponse> {
    HttpResponse response;
    response.body = thread_name();
    if (!is_gated) co_return response;
    auto waited = asio::co_spawn(context_, wait_for_gate(), asio::use_awaitable);
    const std::string other = co_await std::move(waited);
    response.body = other == main_thread ? response.body : "not the main thread";
    co_return response;
  });
  asio::post(context_, [&] { main_thread = thread_name(); });
  auto clients = one_on_each();
  is_gated = true;
  for (RawClient& client : clients) client.send(kept_get);
  for (std::size_t now = 0; now < threads; now = waiting) waiting.wait(now);
  stop();
  // Until no thread listens: requests that end later are told.
  while (can_connect()) std::this_thread::yield();
  asio::post(context_, [&] { gate.cancel(); });
  std::set<std::string> names;
  for (RawClient& client : clients) {
    const std::string answer = client.receive_all();
    const std::string second = answer.substr(answer.rfind("HTTP/1.1 200 OK"));
    EXPECT_THAT(second, HasSubstr("Connection: close\r\n"));
    names.insert(thread_in(second));
  }
  EXPECT_EQ(names.size(), threads);
  has_ended_.get_future().wait();
}

// No body is larger than the share of a thread, whatever the number of threads.
TEST_F(HttpThreadsTest, SetLimits_AppliesToAllThreads) {
  start(tell_thread);
  auto clients = one_on_each();
  std::promise<void> is_set;
  asio::post(context_, [&] {
    server_->set_limits(
        without_deadlines({.body_bytes_max = 100'000, .bodies_bytes_max = 1000, .connections_max = 1000}));
    is_set.set_value();
  });
  is_set.get_future().wait();
  for (RawClient& client : clients) {
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x'));
    EXPECT_THAT(client.receive_until("!HTTP/1.1 200 OK"), HasSubstr("!HTTP/1.1 200 OK"));
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100001\r\n\r\n");
    EXPECT_THAT(client.receive_all(), HasSubstr("HTTP/1.1 413 "));
  }
  stop();
}

}  // namespace
}  // namespace spoor::daemon
