// What a spoord takes over on SIGHUP.
#include <gmock/gmock.h>

#include "tests/daemon/kept_connection.h"
#include "tests/daemon/spoord_fixture.h"
#include "tests/support/loopback.h"

namespace spoor::daemon {
namespace {

using testing::HasSubstr;

class ReloadTest : public SpoordTest {
 protected:
  // The settings that were taken over, as the log names them.
  std::string reload() {
    write_config();
    const std::string before = daemon_->log();
    daemon_->signal(SIGHUP);
    return daemon_->wait_for("reloaded: ", before.size());
  }

  unsigned mark_two_thousand_bytes() {
    std::string paths;
    for (int i = 0; i < 1000; ++i) paths += "a\n";
    return request("POST", "/v1/marks", paths, "text/plain").status;
  }
};

TEST_F(ReloadTest, MaxBody_IsReloaded) {
  start();
  EXPECT_EQ(mark_two_thousand_bytes(), 200U);
  config_["limits"]["max_body"] = "1KiB";
  EXPECT_EQ(reload(), "limits.max_body");
  EXPECT_EQ(mark_two_thousand_bytes(), 413U);
  config_["limits"]["max_body"] = "8MiB";
  EXPECT_EQ(reload(), "limits.max_body");
  EXPECT_EQ(mark_two_thousand_bytes(), 200U);
  EXPECT_EQ(reload(), "no setting has changed; tokens and certificates were read anew");
}

TEST_F(ReloadTest, MaxConnections_IsReloaded) {
  config_["limits"] = {{"max_connections", 1}};
  start();
  KeptConnection first(port());
  ASSERT_EQ(first.send("GET", "/livez").value().status, 200U);
  const auto refused = KeptConnection(port()).send("GET", "/livez");
  EXPECT_EQ(refused.value().status, 503U);
  EXPECT_EQ(refused.value().retry_after, "1");
  config_["limits"]["max_connections"] = 20;
  EXPECT_EQ(reload(), "limits.max_connections");
  EXPECT_EQ(KeptConnection(port()).send("GET", "/livez").value().status, 200U);
  EXPECT_EQ(first.send("GET", "/livez").value().status, 200U) << "the connections there are go on";
}

TEST_F(ReloadTest, StaticPeers_AreReloaded) {
  start();
  EXPECT_TRUE(get("/v1/status")["peers"].empty());
  // Where no server listens: an address of this daemon itself is not shown once it has responded.
  const std::string silent = "http://" + support::own_loopback() + ":1";
  config_["peers"]["static"] = {silent};
  EXPECT_EQ(reload(), "peers.static");
  EXPECT_EQ(get("/v1/status")["peers"][0]["url"], silent);
  EXPECT_NE(daemon_->wait_for("peer (" + silent + ") is down: "), "") << "it is asked";
  config_["peers"]["static"] = nlohmann::json::array();
  reload();
  EXPECT_TRUE(get("/v1/status")["peers"].empty());
}

TEST_F(ReloadTest, DnsNames_AreReloaded) {
  start();
  EXPECT_TRUE(get("/v1/status")["membership"]["dns"].empty());
  config_["peers"]["dns"] = {"spoor.test"};
  config_["peers"]["dns_servers"] = {support::own_loopback() + ":1"};  // where no server listens
  EXPECT_EQ(reload(), "peers.dns, peers.dns_servers");
  EXPECT_NE(daemon_->wait_for("peers.dns: spoor.test:7420: "), "");
  EXPECT_EQ(get("/v1/status")["membership"]["dns"][0]["ok"], false);
}

TEST_F(ReloadTest, SettingsOfOtherPrograms_NeedNoRestart) {
  start();
  config_["scan"] = {{"threads", 3}, {"audit_period", "60d"}};
  config_["history"] = {{"depth", 3}};
  config_["usage"] = {{"owners", true}};
  config_["peers"] = {{"forget_after", "1h"}, {"timeout", "5s"}};
  config_["tracker"]["items"] = 1234;
  EXPECT_EQ(reload(), "peers.forget_after");
  EXPECT_EQ(daemon_->wait_for("needs a restart: "), "tracker.items");
}

TEST_F(ReloadTest, SettingThatNeedsARestart_IsLoggedAtEachReload) {
  start();
  config_["tracker"]["items"] = 1234;
  reload();
  EXPECT_EQ(daemon_->wait_for("needs a restart: "), "tracker.items");
  const std::size_t after = daemon_->log().size();
  config_["log"]["level"] = "debug";
  EXPECT_EQ(reload(), "log.level");
  EXPECT_EQ(daemon_->wait_for("needs a restart: ", after), "tracker.items");
  request("POST", "/v1/snapshot");
  EXPECT_FALSE(daemon_->wait_for("saved snapshot").empty()) << "the level took effect";
}

TEST_F(ReloadTest, InvalidConfiguration_ChangesNothing) {
  start();
  config_["limits"]["max_body"] = "1KiB";
  config_["tracker"]["fp_rate"] = 2;
  write_config();
  daemon_->signal(SIGHUP);
  EXPECT_THAT(daemon_->wait_for("not reloaded, everything stays as it was: "), HasSubstr("tracker.fp_rate"));
  EXPECT_EQ(mark_two_thousand_bytes(), 200U);
  config_["tracker"].erase("fp_rate");
  EXPECT_EQ(reload(), "limits.max_body") << "once it is mended";
  EXPECT_EQ(mark_two_thousand_bytes(), 413U);
}

}  // namespace
}  // namespace spoor::daemon
