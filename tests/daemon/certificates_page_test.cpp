// The commands of docs/certificates.md, run as they stand there, and a daemon with what they make.
#include <gmock/gmock.h>

#include <vector>

#include "tests/daemon/spoord_fixture.h"
#include "tests/support/page_blocks.h"

namespace spoor::daemon {
namespace {

using testing::HasSubstr;

// The blocks of this section for bash.
std::vector<std::string> commands_of(const std::string& section) {
  return support::page_blocks(DOCS "/certificates.md", section, "bash");
}

class CertificatesPageTest : public SpoordTest {
 protected:
  // For nodes on this machine.
  support::CommandResult run(std::string commands) {
    const std::size_t begin = commands.find("nodes='");
    if (begin != std::string::npos) {
      commands.replace(begin, commands.find('\n', begin) - begin,
                       "nodes='node1=" + support::own_loopback() + " node2=127.0.0.1'");
    }
    return support::run_command({"bash", "-c", "set -e\ncd " + directory_.path().native() + '\n' + commands});
  }

  std::string file(const char* name) const { return directory_ / name; }
};

TEST_F(CertificatesPageTest, Commands_MakeCertificatesThatBothEndsAccept) {
  const auto authority = commands_of("The authority");
  const auto nodes = commands_of("The nodes");
  ASSERT_EQ(authority.size(), 2U);
  ASSERT_EQ(nodes.size(), 2U);
  const auto made = run(authority[0] + authority[1] + nodes[0] + nodes[1]);
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.out, "node1.pem: OK\nnode1.pem: OK\nnode2.pem: OK\nnode2.pem: OK\n");
  config_["node"]["name"] = "node1";
  config_["listen"][0]["tls"] = {
      {"certificate", file("node1.pem")}, {"key", file("node1.key")}, {"client_ca", file("ca.pem")}};
  config_["auth"]["certificates"] = {{{"name", "*.storage.example"}, {"role", "peer"}}};
  config_["peers"]["tls"] = {
      {"ca", file("ca.pem")}, {"certificate", file("node1.pem")}, {"key", file("node1.key")}};
  start();
  const auto ask = [&](const char* ca) {
    return support::run_command({"curl", "-sS", "--cacert", file(ca), "--cert", file("node2.pem"), "--key",
                                 file("node2.key"), url_ + "/v1/status"});
  };
  EXPECT_THAT(ask("ca.pem").out, HasSubstr("\"node\":\"node1\""));

  const auto replaced =
      run(authority[0] + commands_of("Replacing the CA").at(0) + commands_of("Renewal").at(0));
  ASSERT_EQ(replaced.code, 0) << replaced.err;
  EXPECT_EQ(ask("ca.pem").out, "") << "the daemon believes the old authority alone";
  daemon_->signal(SIGHUP);
  EXPECT_EQ(daemon_->wait_for("reloaded: "),
            "no setting has changed; tokens and certificates were read anew");
  EXPECT_THAT(ask("both-ca.pem").out, HasSubstr("\"node\":\"node1\""));
  EXPECT_EQ(ask("old-ca.pem").out, "");
}

}  // namespace
}  // namespace spoor::daemon
