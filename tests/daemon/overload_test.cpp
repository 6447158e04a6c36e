// More clients than a spoord can or may serve.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <list>
#include <thread>

#include "tests/daemon/spoord_fixture.h"
#include "tests/faults/connection.h"
#include "tests/support/raw_client.h"
#include "tests/support/sanitizer.h"

namespace spoor::daemon {
namespace {

using faults::Connection;
using testing::HasSubstr;

class OverloadTest : public SpoordTest {
 protected:
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
  Connection served(port());
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

// With few connections allowed, most of those beyond were closed without a word.
TEST_F(OverloadTest, MaxConnectionsReached_Is503AndOthersAreServed) {
  config_["limits"]["max_connections"] = 2;
  start();
  Connection first(port());
  Connection second(port());
  for (Connection* each : {&first, &second}) ASSERT_EQ(each->send("GET", "/livez").value().status, 200U);
  for (int i = 0; i < 20; ++i) {
    support::RawClient third(port());
    third.send("GET /livez HTTP/1.1\r\nHost: h\r\n\r\n");
    const std::string answer = third.receive_all();
    EXPECT_THAT(answer, HasSubstr("HTTP/1.1 503 "));
    EXPECT_THAT(answer, HasSubstr(R"("code":"overloaded")"));
    EXPECT_THAT(answer, HasSubstr("Retry-After: "));
  }
  EXPECT_EQ(first.send("POST", "/v1/marks", R"({"paths":["b/a"]})").value().status, 200U);
}

// They took all descriptors there may be, and left none for the journal and the snapshots.
TEST_F(OverloadTest, FewFileDescriptors_ConnectionsLeaveSomeForTheDisks) {
  start_by({"prlimit", "--nofile=147:147"});  // 3 are for the second thread
  EXPECT_THAT(daemon_->wait_for("limits.max_connections is 1024, but "), HasSubstr("room for 64"));
  std::list<Connection> clients;
  for (int i = 0; i < 64; ++i) {
    clients.emplace_back(port());
    ASSERT_EQ(clients.back().send("GET", "/livez").value().status, 200U) << i;
  }
  EXPECT_EQ(Connection(port()).send("GET", "/livez").value().status, 503U);
  EXPECT_EQ(clients.front().send("POST", "/v1/marks", R"({"paths":["b/a"]})").value().status, 200U);
  EXPECT_EQ(clients.front().send("POST", "/v1/snapshot", "").value().status, 200U);
}

}  // namespace
}  // namespace spoor::daemon
