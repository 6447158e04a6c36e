// The watch against a server on this machine that says what the test wants it to. Both live on the test's
// thread, so that nothing happens but while a test waits for something.
#include "peer/etcd_watch.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "peer/http_exchange.h"
#include "tests/support/loopback.h"
#include "tests/support/temp_directory.h"

namespace spoor::peer {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using unix_stream = asio::local::stream_protocol;
using std::chrono::milliseconds;

constexpr std::chrono::seconds hang{20};  // what takes longer never comes
constexpr milliseconds for_ever = std::chrono::hours(1);

const std::string header = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string created = R"({"result":{"header":{"revision":"7"},"created":true}})";
const std::string event = R"({"result":{"header":{"revision":"8"},"events":[{"kv":{"key":"YQ=="}}]}})";

std::string chunk(const std::string& text) { return fmt::format("{:x}\r\n{}\r\n", text.size(), text); }

// Takes every connection, and reads whatever comes.
template <class Protocol>
class Server {
 public:
  Server(asio::io_context& context, const typename Protocol::endpoint& at) : acceptor_(context, at) {
    accept();
  }

  typename Protocol::endpoint endpoint() const { return acceptor_.local_endpoint(); }
  std::size_t connections() const { return connections_.size(); }

  // Of the newest connection.
  const std::string& request() const { return connections_.back()->received; }
  bool is_asked() const { return !connections_.empty() && request().ends_with("}}"); }
  bool is_left() const { return connections_.back()->is_left; }

  void send(const std::string& text) {
    const auto connection = connections_.back();
    const auto kept = std::make_shared<const std::string>(text);
    asio::async_write(connection->socket, asio::buffer(*kept),
                      [connection, kept](const error_code&, std::size_t) {});
  }
  void hang_up() { connections_.back()->socket.close(); }

  // Does nothing any more; the connections stay open.
  void freeze() {
    acceptor_.cancel();
    for (const auto& connection : connections_) {
      if (connection->socket.is_open()) connection->socket.cancel();
    }
  }

 private:
  struct Connection {
    explicit Connection(typename Protocol::socket accepted) : socket(std::move(accepted)) {}

    typename Protocol::socket socket;
    char buffer[4096] = {};
    std::string received;
    bool is_left = false;
  };

  void accept() {
    acceptor_.async_accept([this](const error_code& error, typename Protocol::socket socket) {
      if (error) return;
      read(connections_.emplace_back(std::make_shared<Connection>(std::move(socket))));
      accept();
    });
  }

  static void read(const std::shared_ptr<Connection>& connection) {
    connection->socket.async_read_some(asio::buffer(connection->buffer),
                                       [connection](const error_code& error, std::size_t bytes) {
                                         connection->received.append(connection->buffer, bytes);
                                         connection->is_left = static_cast<bool>(error);
                                         if (!error) read(connection);
                                       });
  }

  typename Protocol::acceptor acceptor_;
  std::vector<std::shared_ptr<Connection>> connections_;
};

Endpoint endpoint_of(const tcp::endpoint& at) { return {at.address().to_string(), at.port(), {}}; }

tcp::endpoint any_port() { return {asio::ip::make_address(support::own_loopback()), 0}; }

class EtcdWatchTest : public testing::Test {
 protected:
  void TearDown() override { expect_stop(); }

  // Whatever the watch is doing, and though the other end does not help: it leaves nothing behind.
  void expect_stop() {
    server_.freeze();
    if (second_) second_->freeze();
    watch_->stop();
    const int changes = changes_;
    context_.restart();
    context_.run_for(hang);
    EXPECT_TRUE(context_.stopped()) << "the watch goes on after stop()";
    EXPECT_EQ(changes_, changes);
  }

  EtcdWatch::Options options() const {
    return {.endpoints = {endpoint_of(server_.endpoint())},
            .range = {"a", "b"},
            .timeout = for_ever,
            .first_pause = milliseconds(1),
            .pause_max = milliseconds(1)};
  }

  void start(EtcdWatch::Options options) {
    watch_.emplace(context_, std::move(options),
                   EtcdWatch::Callbacks{.on_change =
                                            [this] {
                                              ++changes_;
                                              on_change_();
                                            },
                                        .on_trouble =
                                            [this](const base::Error& error) {
                                              troubles_.push_back(error.message);
                                              on_trouble_();
                                            }});
    watch_->start();
  }

  void run_until(const std::function<bool()>& is_so) {
    while (!is_so()) {
      if (context_.run_one_for(hang) == 0) throw std::runtime_error("what the test waits for never comes");
    }
  }

  void wait_for_request() {
    run_until([this] { return server_.is_asked(); });
  }

  void wait_for_changes(int changes) {
    run_until([&] { return changes_ >= changes; });
    context_.poll();
    EXPECT_EQ(changes_, changes);
  }

  // From the request to a watch that stands.
  void begin() {
    wait_for_request();
    server_.send(header + chunk(created + '\n'));
    wait_for_changes(changes_ + 1);
  }

  // The connection there is ends, and the next one is served well.
  void expect_new_connection() {
    const std::size_t before = server_.connections();
    run_until([&] { return server_.connections() > before; });
    begin();
  }

  asio::io_context context_;
  Server<tcp> server_{context_, any_port()};
  std::optional<Server<tcp>> second_;
  std::optional<EtcdWatch> watch_;
  std::function<void()> on_change_ = [] {};
  std::function<void()> on_trouble_ = [] {};
  int changes_ = 0;
  std::vector<std::string> troubles_;
};

TEST_F(EtcdWatchTest, ItAsksForTheRangeAndTellsWhenItBegins) {
  start(options());
  wait_for_request();
  EXPECT_TRUE(server_.request().starts_with("POST /v3/watch HTTP/1.1\r\n")) << server_.request();
  EXPECT_TRUE(server_.request().ends_with(R"({"create_request":{"key":"YQ==","range_end":"Yg=="}})"))
      << server_.request();
  EXPECT_NE(server_.request().find("\r\nGrpc-Metadata-hasleader: true\r\n"), std::string::npos);
  server_.send(header);
  context_.poll();
  EXPECT_EQ(changes_, 0);
  server_.send(chunk(created + '\n'));
  wait_for_changes(1);
}

TEST_F(EtcdWatchTest, OnlyAnswersWithEventsAreChanges) {
  start(options());
  begin();
  server_.send(chunk(event + '\n'));
  wait_for_changes(2);
  server_.send(chunk(R"({"result":{"header":{"revision":"9"}}})") +
               chunk(R"({"result":{"header":{"revision":"9"},"events":[]}})") + chunk(event));
  wait_for_changes(3);
}

TEST_F(EtcdWatchTest, AnAnswerMayComeInPieces) {
  const std::string tricky =
      R"({"result":{"header":{"}":"\"}{\\"},"events":[{"kv":{"key":"YQ=="}},{"type":"DELETE"}]}})";
  start(options());
  wait_for_request();
  std::string all = header;
  for (const char byte : created + "\r\n" + tricky + "\n" + event) all += chunk(std::string(1, byte));
  for (const char byte : all) {
    server_.send(std::string(1, byte));
    context_.poll();
  }
  wait_for_changes(3);
}

TEST_F(EtcdWatchTest, SeveralAnswersMayComeAtOnce) {
  start(options());
  wait_for_request();
  server_.send(header + chunk(created + '\n' + event + event + "\n\n" + event));
  wait_for_changes(4);
}

TEST_F(EtcdWatchTest, WhateverIsNoAnswerEndsTheConnection) {
  const std::string bad[] = {
      header + chunk("garbage"),
      header + chunk("[]"),
      header + chunk("{garbage}"),
      header + chunk(R"({"result":5})"),
      header + chunk(R"({"error":{"grpc_code":14,"message":"etcdserver: no leader"}})"),
      header + chunk(R"({"result":{"created":true,"canceled":true,"compact_revision":"5"}})"),
      header + "garbage\r\n",
      header + "0\r\n\r\n",
      "220 smtp.example ESMTP\r\n",
      "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 53\r\n\r\n" + created,
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
      "HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x'),
  };
  start(options());
  for (const std::string& each : bad) {
    SCOPED_TRACE(each.substr(0, 200));
    wait_for_request();
    const int changes = changes_;
    server_.send(each);
    run_until([this] { return server_.is_left(); });
    EXPECT_EQ(changes_, changes) << "nothing began";
    expect_new_connection();
    server_.hang_up();
    const std::size_t connections = server_.connections();
    run_until([&] { return server_.connections() > connections; });
  }
}

TEST_F(EtcdWatchTest, AnAnswerOfAnyLengthIsNotKept) {
  start(options());
  begin();
  const std::string part(64U << 10U, 'x');
  std::string most = R"({"result":{"events":[")";
  while (most.size() + part.size() + 10 < EtcdWatch::answer_bytes_max) most += part;
  most += R"("]}})";
  server_.send(chunk(most) + chunk(event));
  wait_for_changes(3);
  std::string more = "{\"";
  while (more.size() <= EtcdWatch::answer_bytes_max) more += part;
  server_.send(chunk(more));
  run_until([this] { return server_.is_left(); });
  expect_new_connection();
}

TEST_F(EtcdWatchTest, NoMemoryIsSetAsideForALengthThatIsOnlyDeclared) {
  start(options());
  wait_for_request();
  server_.send("HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999\r\n\r\n" + created);
  wait_for_changes(1);
}

TEST_F(EtcdWatchTest, AfterAHangUpTheNextEndpointTellsWhatChangedMeanwhile) {
  second_.emplace(context_, any_port());
  EtcdWatch::Options both = options();
  both.endpoints.push_back(endpoint_of(second_->endpoint()));
  start(both);
  begin();
  server_.hang_up();
  run_until([this] { return second_->is_asked(); });
  EXPECT_EQ(server_.connections(), 1U);
  second_->send(header + chunk(created));
  wait_for_changes(2);
  second_->hang_up();
  expect_new_connection();
}

TEST_F(EtcdWatchTest, AnOutageIsToldOnce) {
  start(options());
  const auto fail = [this](std::size_t times) {
    const std::size_t until = server_.connections() + times;
    while (server_.connections() < until) {
      const std::size_t before = server_.connections();
      run_until([this] { return server_.is_asked(); });
      server_.hang_up();
      run_until([&] { return server_.connections() > before; });
    }
  };
  fail(1);
  EXPECT_TRUE(troubles_.empty()) << "one failure alone is none";
  fail(5);
  ASSERT_EQ(troubles_.size(), 1U);
  EXPECT_TRUE(troubles_[0].starts_with(options().endpoints[0].to_string() + ": cannot ")) << troubles_[0];
  begin();
  fail(5);
  EXPECT_EQ(troubles_.size(), 2U);
}

TEST_F(EtcdWatchTest, WhoAnswersNothingIsLeft) {
  EtcdWatch::Options short_time = options();
  short_time.timeout = milliseconds(50);
  start(short_time);
  run_until([this] { return !troubles_.empty(); });
  EXPECT_GE(server_.connections(), 2U);
  EXPECT_NE(troubles_[0].find("no answer in time"), std::string::npos) << troubles_[0];
  EXPECT_EQ(changes_, 0);
}

TEST_F(EtcdWatchTest, NotToSayThatItWatchesIsNoAnswer) {
  EtcdWatch::Options short_time = options();
  short_time.timeout = milliseconds(50);
  start(short_time);
  wait_for_request();
  const std::size_t before = server_.connections();
  server_.send(header + chunk(R"({"result":{"header":{}}})"));
  run_until([&] { return server_.connections() > before; });
}

TEST_F(EtcdWatchTest, AWatchThatBeganMayBeSilentForLong) {
  EtcdWatch::Options short_time = options();
  short_time.timeout = milliseconds(200);
  start(short_time);
  // Where the machine is slow, at a later attempt.
  std::size_t served = 0;
  run_until([&] {
    if (server_.is_asked() && server_.connections() > served) {
      served = server_.connections();
      server_.send(header + chunk(created));
    }
    return changes_ == 1;
  });
  const std::size_t connections = server_.connections();
  asio::steady_timer timer(context_, 3 * short_time.timeout);
  bool is_over = false;
  timer.async_wait([&](const error_code&) { is_over = true; });
  run_until([&] { return is_over; });
  EXPECT_EQ(server_.connections(), connections);
  server_.send(chunk(event));
  wait_for_changes(2);
}

TEST_F(EtcdWatchTest, TcpAsksWhetherTheOtherEndIsThere) {
  start(options());
  begin();
  // "sl local remote st tx:rx tr:when": timer 2 is that of the keepalive.
  const auto remote = fmt::format(":{:04X}", server_.endpoint().port());
  std::ifstream table("/proc/net/tcp");
  std::string line;
  bool is_found = false;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number, local, other, state, queues, timer;
    words >> number >> local >> other >> state >> queues >> timer;
    is_found = is_found || (other.ends_with(remote) && state == "01" && timer.starts_with("02:"));
  }
  EXPECT_TRUE(is_found);
}

TEST_F(EtcdWatchTest, PausesBeginAnewWithAWatchThatBegan) {
  EtcdWatch::Options doubling = options();
  doubling.pause_max = for_ever;
  start(doubling);
  for (int i = 0; i < 20; ++i) {
    begin();
    const std::size_t before = server_.connections();
    server_.hang_up();
    run_until([&] { return server_.connections() > before; });
  }
}

TEST_F(EtcdWatchTest, AUnixSocketIsAnEndpointToo) {
  const support::TempDirectory directory;
  Server<unix_stream> server(context_, unix_stream::endpoint((directory / "etcd").native()));
  EtcdWatch::Options at_socket = options();
  at_socket.endpoints = {{{}, 0, (directory / "etcd").native()}};
  start(at_socket);
  run_until([&] { return server.is_asked(); });
  server.send(header + chunk(created));
  wait_for_changes(1);
  server.freeze();
  expect_stop();
}

// Each ends with expect_stop().
TEST_F(EtcdWatchTest, ItStopsBeforeItBegan) {
  start(options());
  watch_->stop();
}

TEST_F(EtcdWatchTest, ItStopsWhileItConnects) {
  // Where nobody accepts, and the backlog is full, the kernel does not answer.
  tcp::acceptor full(context_, tcp::v4());
  full.bind(any_port());
  full.listen(0);
  tcp::socket only(context_);
  only.connect(full.local_endpoint());
  EtcdWatch::Options nobody = options();
  nobody.endpoints = {endpoint_of(full.local_endpoint())};
  start(nobody);
  context_.run_one_for(hang);
  context_.poll();
  EXPECT_TRUE(troubles_.empty());
  expect_stop();
}

TEST_F(EtcdWatchTest, ItStopsWhileItWaitsForAnAnswer) {
  start(options());
  wait_for_request();
}

TEST_F(EtcdWatchTest, ItStopsWhileItWatches) {
  start(options());
  begin();
}

TEST_F(EtcdWatchTest, ItStopsWhileItPauses) {
  EtcdWatch::Options slow = options();
  slow.first_pause = for_ever;
  slow.pause_max = for_ever;
  start(slow);
  wait_for_request();
  server_.hang_up();
  context_.poll();
}

TEST_F(EtcdWatchTest, ItStopsWhenItIsToldToOfAChange) {
  start(options());
  on_change_ = [this] { watch_->stop(); };
  wait_for_request();
  server_.send(header + chunk(created + event + event));
  wait_for_changes(1);
}

TEST_F(EtcdWatchTest, ItStopsWhenItIsToldToOfTrouble) {
  start(options());
  on_trouble_ = [this] { watch_->stop(); };
  for (std::size_t i = 1; i <= 2; ++i) {
    run_until([&] { return server_.connections() == i && server_.is_asked(); });
    server_.hang_up();
  }
  run_until([this] { return !troubles_.empty(); });
}

TEST(PauseAfterTest, PausesDoubleUpToTheLongest) {
  std::minstd_rand random(1);
  for (unsigned attempts = 1; attempts < 100; ++attempts) {
    const auto nominal = attempts < 7 ? milliseconds(500 << (attempts - 1)) : milliseconds(20'000);
    const auto pause = pause_after(attempts, milliseconds(500), milliseconds(20'000), random);
    EXPECT_GE(pause, nominal / 2) << attempts;
    EXPECT_LE(pause, nominal * 3 / 2) << attempts;
  }
}

}  // namespace
}  // namespace spoor::peer
