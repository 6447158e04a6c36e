// More clients than a spoord can or may serve.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <list>
#include <thread>

#include "tests/daemon/kept_connection.h"
#include "tests/daemon/spoord_fixture.h"
#include "tests/support/certificates.h"
#include "tests/support/raw_client.h"
#include "tests/support/sanitizer.h"

namespace spoor::daemon {
namespace {

using testing::HasSubstr;

class OverloadTest : public SpoordTest {
 protected:
  OverloadTest() { config_.erase("limits"); }  // one thread, which has all of the limits

  // Allows the daemon that many open files from now on.
  void allow_files(rlim_t count) {
    rlimit limit{};
    ASSERT_EQ(::prlimit(daemon_->pid(), RLIMIT_NOFILE, nullptr, &limit), 0);
    limit.rlim_cur = count;
    ASSERT_EQ(::prlimit(daemon_->pid(), RLIMIT_NOFILE, &limit, nullptr), 0);
  }

  // How often it has gone to wait for something; it also does so after each try to accept.
  std::uint64_t waits() {
    std::ifstream file("/proc/" + std::to_string(daemon_->pid()) + "/status");
    std::uint64_t switches = 0;
    for (std::string word; file >> word;) {
      if (word == "voluntary_ctxt_switches:") file >> switches;
    }
    return switches;
  }

  std::size_t count_in_log(const std::string& text) {
    const std::string log = daemon_->log();
    std::size_t count = 0;
    for (auto at = log.find(text); at != log.npos; at = log.find(text, at + 1)) ++count;
    return count;
  }
};

#if !SPOOR_IS_SANITIZED  // a sanitizer opens a pipe to look at an object that it sees for the first time
TEST_F(OverloadTest, NoFileDescriptorsLeft_IsLoggedOnceAndRecovers) {
  start();
  KeptConnection served(port());
  ASSERT_EQ(served.send("GET", "/livez").value().status, 200U);  // it is accepted
  allow_files(3);                                                // fewer than it has open
  support::RawClient waiting(port());
  waiting.send("GET /livez HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(daemon_->wait_for("cannot accept connections: "), HasSubstr("Too many open files"));
  for (int i = 0; i < 100; ++i) {
    const auto answer = served.send("POST", "/v1/marks", R"({"paths":["b/a"]})");
    ASSERT_EQ(answer.value().status, 200U) << "those it has go on";
  }
  for (const auto before = waits(); waits() < before + 5;) std::this_thread::yield();
  allow_files(1000);
  EXPECT_THAT(waiting.receive_all(), HasSubstr("200 OK"));
  EXPECT_EQ(daemon_->wait_for("connections are accepted "), "again");
  EXPECT_EQ(count_in_log("cannot accept connections"), 1U) << daemon_->log();
}
#endif

// What each of a flood of connections sends at first, and then again and again.
struct Flood {
  std::string name;
  std::string first;
  std::string next;
  bool is_tls = false;
};

void PrintTo(const Flood& flood, std::ostream* out) { *out << flood.name; }

class FloodTest : public OverloadTest, public testing::WithParamInterface<Flood> {
 protected:
  FloodTest() {
    socket_.unix_path = (directory_ / "socket").native();
    const std::string address = support::own_loopback();
    const support::Certificates certificates(directory_.path(), "authority");
    certificates.issue("server", address);
    config_["limits"]["max_connections"] = 64;
    config_["listen"].push_back(
        {{"address", address},
         {"port", 0},
         {"tls",
          {{"certificate", certificates.certificate("server")}, {"key", certificates.key("server")}}}});
    config_["listen"].push_back({{"unix", socket_.unix_path}});
  }

  unsigned mark_over_the_unix_socket() {
    peer::HttpTransport transport({.timeout = std::chrono::minutes(2), .attempts_max = 1});
    const auto answer =
        peer::exchange(transport, {socket_, "POST", "/v1/marks", "application/json", R"({"paths":["b/a"]})"});
    return answer ? answer->status : 0;
  }

  static std::string mark(const std::string& fields) {
    return "POST /v1/marks?kind=file HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n" + fields +
           "Content-Length: 3\r\n\r\nb/a";
  }

  base::Endpoint socket_;
};

// One address took all places for as long as it wanted, and root could not mark over the Unix socket.
TEST_P(FloodTest, OfOneAddress_OthersMark) {
  start();
  const std::string tls_url = daemon_->wait_for("listening on https");
  const auto flooded = GetParam().is_tls ? base::parse_endpoint("https" + tls_url).value().port : port();
  support::RawClient kept(port(), "127.0.0.2");
  std::list<support::RawClient> clients;
  for (int i = 0; i < 200; ++i) clients.emplace_back(flooded).send(GetParam().first);
  support::RawClient last(flooded);
  last.send("GET /livez HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  last.receive_all();  // those before it are accepted
  for (int round = 0; round < 20; ++round) {
    for (support::RawClient& client : clients) client.send(GetParam().next);
    EXPECT_EQ(mark_over_the_unix_socket(), 200U);
    support::RawClient fresh(port(), "127.0.0.2");
    fresh.send(mark("Connection: close\r\n"));
    EXPECT_THAT(fresh.receive_all(), HasSubstr("HTTP/1.1 200 "));
    kept.send(mark(""));
  }
  kept.send(mark("Connection: close\r\n"));
  const std::string answers = kept.receive_all();
  EXPECT_THAT(answers, HasSubstr("Connection: close")) << "it was served until then";
  EXPECT_THAT(answers, testing::Not(HasSubstr(" 503 ")));
}

const std::string ask = "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n";
const std::string client_hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);

INSTANTIATE_TEST_SUITE_P(
    Clients, FloodTest,
    testing::Values(Flood{"Idle", "", ""}, Flood{"Asking", ask, ask},
                    Flood{"SlowHeader", "GET /livez HTTP/1.1\r\nX: ", "x"},
                    Flood{"SlowBody",
                          "POST /v1/marks HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
                          "Content-Length: 1000000\r\n\r\n",
                          "x"},
                    Flood{"SlowTls", client_hello, "", true}),
    [](const testing::TestParamInfo<Flood>& info) { return info.param.name; });

// They took all descriptors there may be, and left none for the journal and the snapshots.
TEST_F(OverloadTest, FewFileDescriptors_ConnectionsLeaveSomeForTheDisks) {
  start_by({"prlimit", "--nofile=144:144"});
  EXPECT_THAT(daemon_->wait_for("limits.max_connections is 1024, but "), HasSubstr("room for 64"));
  std::list<KeptConnection> clients;
  for (int i = 0; i < 64; ++i) {
    clients.emplace_back(port());
    ASSERT_EQ(clients.back().send("GET", "/livez").value().status, 200U) << i;
  }
  EXPECT_EQ(KeptConnection(port()).send("GET", "/livez").value().status, 503U);
  EXPECT_EQ(clients.front().send("POST", "/v1/marks", R"({"paths":["b/a"]})").value().status, 200U);
  EXPECT_EQ(clients.front().send("POST", "/v1/snapshot", "").value().status, 200U);
}

}  // namespace
}  // namespace spoor::daemon
