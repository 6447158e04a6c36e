// A spoord that is stopped, and started again on the same sockets, while clients go on.
#include <gmock/gmock.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "tests/daemon/kept_connection.h"
#include "tests/daemon/spoord_fixture.h"
#include "tests/support/listening_socket.h"
#include "tests/support/raw_client.h"

namespace spoor::daemon {
namespace {

// Marks one path after the other, each until it is acknowledged, as docs/http-api.md asks.
class Writers {
 public:
  explicit Writers(std::uint16_t port) : port_(port) {
    for (const bool is_new_each_time : {true, true, false, false}) {
      threads_.emplace_back(
          [this, is_new_each_time](const std::stop_token& stop) { write(stop, is_new_each_time); });
    }
  }

  void wait_for_more(std::size_t more) {
    const std::size_t wanted = acknowledged_ + more;
    for (std::size_t now = acknowledged_; now < wanted; now = acknowledged_) acknowledged_.wait(now);
  }

  // Every path that was acknowledged.
  std::vector<std::string> stop() {
    threads_.clear();
    return paths_;
  }

  std::size_t refused() const { return refused_; }

 private:
  void write(const std::stop_token& stop, bool is_new_each_time) {
    std::optional<KeptConnection> connection;
    while (!stop.stop_requested()) {
      const std::string path = "b/" + std::to_string(next_++);
      while (!mark(connection, path, is_new_each_time)) {
      }
      const std::scoped_lock lock(mutex_);
      paths_.push_back(path);
      ++acknowledged_;
      acknowledged_.notify_all();
    }
  }

  bool mark(std::optional<KeptConnection>& connection, const std::string& path, bool is_new_each_time) {
    if (is_new_each_time || !connection) connection.emplace(port_);
    const auto answer = connection->send("POST", "/v1/marks", R"({"paths":[")" + path + R"("]})");
    const bool is_refused = !answer && answer.error().code == std::errc::connection_refused;
    if (is_refused) ++refused_;
    return is_refused ||
           (answer && answer->status == 200);  // one is enough to fail, and there may be no end of them
  }

  const std::uint16_t port_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::size_t> refused_ = 0;
  std::atomic<std::size_t> acknowledged_ = 0;
  std::mutex mutex_;
  std::vector<std::string> paths_;
  std::vector<std::jthread> threads_;
};

TEST_F(SpoordTest, RestartOnPassedSockets_RefusesNoConnectionAndLosesNoMark) {
  const support::ListeningSocket socket;
  config_["listen"] = {{{"address", support::own_loopback()}, {"port", socket.port()}}};
  start_by({}, {socket.fd()});
  const auto instance = get("/v1/status")["instance"];
  Writers writers(socket.port());
  for (int restart = 0; restart < 5; ++restart) {
    writers.wait_for_more(50);
    EXPECT_EQ(stop(), 0);
    start_by({}, {socket.fd()});
  }
  writers.wait_for_more(50);
  const auto acknowledged = writers.stop();
  EXPECT_EQ(writers.refused(), 0U);
  EXPECT_EQ(get("/v1/status")["instance"], instance);
  KeptConnection connection(socket.port());
  const auto dirty = [&](const std::string& path) {
    const auto answer = connection.send("GET", "/v1/dirty?path=" + path);
    return nlohmann::json::parse(answer.value().body)["dirty"].get<bool>();
  };
  EXPECT_FALSE(dirty("never/marked")) << "no gap that would cover the rest";
  EXPECT_GE(acknowledged.size(), 300U);
  for (const std::string& path : acknowledged) EXPECT_TRUE(dirty(path)) << path;
}

TEST_F(SpoordTest, Stop_RequestUnderWay_IsAnsweredAndConnectionClosed) {
  start();
  support::RawClient client(port());
  client.send(
      "POST /v1/marks HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n"
      "Expect: 100-continue\r\n\r\n");
  client.receive_until("100 Continue");
  daemon_->signal(SIGTERM);
  daemon_->wait_for("stopping on signal");
  client.send("b/late");
  const std::string answer = client.receive_all();
  EXPECT_THAT(answer, testing::HasSubstr("HTTP/1.1 200 OK"));
  EXPECT_THAT(answer, testing::HasSubstr("Connection: close"));
  EXPECT_EQ(daemon_->wait(), 0);
  start();
  EXPECT_TRUE(get("/v1/dirty?path=b/late")["dirty"]);
  EXPECT_FALSE(get("/v1/dirty?path=b/never")["dirty"]);
}

}  // namespace
}  // namespace spoor::daemon
