// Sockets that listen before the daemon does, as systemd passes them.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/daemon/spoord_fixture.h"
#include "tests/support/listening_socket.h"

namespace spoor::daemon {
namespace {

using testing::HasSubstr;

class PassedSocketsTest : public SpoordTest {
 protected:
  std::string tcp_url(const support::ListeningSocket& socket) {
    return "http://" + support::own_loopback() + ":" + std::to_string(socket.port());
  }

  // Of a start that must fail.
  std::string start_failure(const std::vector<int>& sockets) {
    write_config();
    support::Daemon daemon({SPOORD, "--config", config_file()}, sockets);
    const std::string message = daemon.wait_for("spoord: ");
    EXPECT_EQ(daemon.wait(), 1);
    EXPECT_FALSE(std::filesystem::exists(directory_ / "data/instance.json")) << "nothing was changed";
    return message;
  }
};

TEST_F(PassedSocketsTest, PassedSocket_OfAListener_IsServedWithoutBinding) {
  const support::ListeningSocket socket;
  config_["listen"] = {{{"address", support::own_loopback()}, {"port", socket.port()}}};
  start_by({}, {socket.fd()});
  EXPECT_EQ(url_, tcp_url(socket));
  EXPECT_EQ(request("GET", "/readyz").status, 200U);
  EXPECT_THAT(daemon_->log(), HasSubstr(url_ + " was opened by the service manager"));
  EXPECT_EQ(stop(), 0);
}

TEST_F(PassedSocketsTest, OtherListeners_AreBoundAsUsual) {
  const support::ListeningSocket socket(directory_ / "passed.sock");
  config_["listen"].push_back({{"unix", directory_ / "passed.sock"}});
  config_["listen"].push_back({{"unix", directory_ / "bound.sock"}});
  start_by({}, {socket.fd()});
  for (const std::string& url : {url_, "unix:" + (directory_ / "passed.sock").native(),
                                 "unix:" + (directory_ / "bound.sock").native()}) {
    url_ = url;
    EXPECT_EQ(request("GET", "/readyz").status, 200U) << url;
  }
  EXPECT_EQ(stop(), 0);
  EXPECT_TRUE(std::filesystem::exists(directory_ / "passed.sock")) << "systemd goes on listening";
  EXPECT_FALSE(std::filesystem::exists(directory_ / "bound.sock"));
}

TEST_F(PassedSocketsTest, PassedSocket_OnLoopbackNotInListen_IsServed) {
  const support::ListeningSocket socket;
  config_["listen"] = {{{"unix", directory_ / "own.sock"}}};
  start_by({}, {socket.fd()});
  url_ = tcp_url(socket);
  EXPECT_EQ(request("GET", "/readyz").status, 200U);
}

TEST_F(PassedSocketsTest, PassedSocket_OnAllAddresses_IsRefusedUnlessInsecure) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::listen(fd, 1), 0);  // on a free port of all addresses
  const std::string message = start_failure({fd});
  EXPECT_THAT(message, HasSubstr("on 0.0.0.0 port "));
  EXPECT_THAT(message, HasSubstr("is refused: other machines reach it"));
  EXPECT_THAT(message, HasSubstr("Add it to listen"));
  const int port = std::stoi(message.substr(message.find(" port ") + 6));
  config_["listen"] = {{{"address", "0.0.0.0"}, {"port", port}, {"insecure", true}}};
  start_by({}, {fd});
  EXPECT_EQ(url_, "http://0.0.0.0:" + std::to_string(port));
  ::close(fd);
}

TEST_F(PassedSocketsTest, TwoPassedSockets_OnOnePath_AreRefused) {
  const auto path = directory_ / "passed.sock";
  const support::ListeningSocket first(path);
  std::filesystem::remove(path);
  const support::ListeningSocket second(path);
  EXPECT_THAT(start_failure({first.fd(), second.fd()}), HasSubstr("passed two sockets on " + path.native()));
}

TEST_F(PassedSocketsTest, PassedSocket_NotListening_IsRefused) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  EXPECT_THAT(start_failure({ends[0]}), HasSubstr("no Accept=yes"));
  const int datagrams = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  EXPECT_THAT(start_failure({datagrams}), HasSubstr("ListenStream="));
  for (const int fd : {ends[0], ends[1], datagrams}) ::close(fd);
}

TEST_F(PassedSocketsTest, PassedSockets_ForAnotherProcess_AreIgnored) {
  start_by({"env", "LISTEN_PID=1", "LISTEN_FDS=1"});
  EXPECT_EQ(request("GET", "/readyz").status, 200U);
  EXPECT_EQ(stop(), 0);
}

}  // namespace
}  // namespace spoor::daemon
