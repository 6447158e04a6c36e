#include "config/derived.h"

#include <gtest/gtest.h>

#include "tests/support/listening_socket.h"
#include "tests/support/temp_directory.h"

namespace spoor::config {
namespace {

class OwnEndpointTest : public testing::Test {
 protected:
  OwnEndpointTest() {
    Listener tcp;
    tcp.address = "0.0.0.0";
    tcp.port = 7420;
    Listener socket;
    socket.unix_path = path_;
    config_.listen = {tcp, socket};
    config_.listen_is_default = false;
  }

  std::string endpoint() const { return own_endpoint(config_).value().to_string(); }

  const support::TempDirectory directory_;
  const std::filesystem::path path_ = directory_ / "s.sock";
  Config config_;
};

// During a restart the socket is not there, and whoever has taken the port meanwhile would be shown the
// token, and could acknowledge marks.
TEST_F(OwnEndpointTest, ConfiguredUnixSocketMissing_IsStillUsed) {
  EXPECT_EQ(endpoint(), "unix:" + path_.native());
  config_.listen.pop_back();
  EXPECT_EQ(endpoint(), "http://127.0.0.1:7420");
}

TEST_F(OwnEndpointTest, DefaultUnixSocketMissing_TcpIsUsed) {
  config_.listen_is_default = true;
  EXPECT_EQ(endpoint(), "http://127.0.0.1:7420");
  const support::ListeningSocket there(path_);
  EXPECT_EQ(endpoint(), "unix:" + path_.native());
}

TEST_F(OwnEndpointTest, PortZero_IsAnError) {
  config_.listen = {Listener{}};
  config_.listen[0].port = 0;
  EXPECT_FALSE(own_endpoint(config_));
}

}  // namespace
}  // namespace spoor::config
