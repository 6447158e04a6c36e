// `spoor --url`: what the daemon there knows, not what this machine does.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <fstream>
#include <regex>

#include "base/file_system.h"
#include "tests/cluster/cluster.h"
#include "tests/support/loopback.h"

namespace spoor::cluster {
namespace {

using testing::HasSubstr;

// A port of 127.0.0.1 that swallows what is sent to it: it takes one connection more than its backlog, and
// drops the packets of others.
class SwallowingPort {
 public:
  SwallowingPort() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const plain = reinterpret_cast<sockaddr*>(&address_);
    socklen_t size = sizeof(address_);
    EXPECT_EQ(::bind(listening_.get(), plain, size), 0);
    EXPECT_EQ(::listen(listening_.get(), 0), 0);
    EXPECT_EQ(::getsockname(listening_.get(), plain, &size), 0);
    EXPECT_EQ(::connect(taken_.get(), plain, size), 0);
  }

  std::uint16_t number() const { return ntohs(address_.sin_port); }

 private:
  sockaddr_in address_{};
  const base::Descriptor listening_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const base::Descriptor taken_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

class DaemonUrlTest : public testing::Test {
 protected:
  Cluster::Node& here() { return cluster_.nodes()[0]; }
  Cluster::Node& there() { return cluster_.nodes()[1]; }

  support::CommandResult at_the_other(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--url", "unix:" + cluster_.socket_of(there()).native()});
    return cluster_.spoor(here(), std::move(arguments));
  }

  Cluster cluster_{2, 1};
};

TEST_F(DaemonUrlTest, ReadingCommands_WithUrl_PrintTheSameAsOnThatNode) {
  std::filesystem::create_directories(there().drives[0] / "bucket/of the other");
  std::ofstream(there().drives[0] / "bucket/file") << "12345";
  std::ofstream(there().drives[0] / "bucket/of the other/file") << "1234567";
  for (auto* node : {&here(), &there()}) cluster_.scan(*node);
  const std::vector<std::vector<std::string>> commands{{"usage"},
                                                       {"usage", "--json", "--depth", "3"},
                                                       {"usage", "bucket", "--csv"},
                                                       {"usage", "--depth", "0", "--sort", "name"},
                                                       {"scans"},
                                                       {"scans", "--json"},
                                                       {"drives"},
                                                       {"drives", "--json"}};
  for (const auto& command : commands) {
    const auto local = cluster_.spoor(there(), command);
    const auto remote = at_the_other(command);
    EXPECT_EQ(remote.code, 0) << remote.err;
    // The disk of the machine has other users.
    const std::regex space("(used|free)_bytes\": [0-9]+");
    EXPECT_EQ(std::regex_replace(remote.out, space, "$1"), std::regex_replace(local.out, space, "$1"))
        << command[0];
    EXPECT_NE(remote.out, cluster_.spoor(here(), command).out) << command[0];
  }
  EXPECT_THAT(at_the_other({"status"}).out, HasSubstr("node       n1 of"));
  const auto absent = at_the_other({"usage", "nowhere"});
  EXPECT_EQ(absent.code, 1);
  EXPECT_THAT(absent.err, HasSubstr("no directory 'nowhere' was found by the last scan"));
}

TEST_F(DaemonUrlTest, CommandsOnLocalFiles_WithUrl_AreRefused) {
  const std::vector<std::vector<std::string>> commands{{"changes", "--since", "0"},
                                                       {"changes", "--consumers"},
                                                       {"inspect", "/dev/null"},
                                                       {"config", "show"},
                                                       {"config", "check"}};
  for (const auto& command : commands) {
    const auto refused = at_the_other(command);
    EXPECT_EQ(refused.code, 2) << command[0];
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err, HasSubstr("--url: 'spoor " + command[0] + "' does not ask a daemon"));
  }
}

TEST_F(DaemonUrlTest, FirstAddressOfTheHostSwallowsPackets_NextOneIsTried) {
  const SwallowingPort swallowing;
  cluster_.configure(here(),
                     [&](nlohmann::json& config) { config["listen"][0]["port"] = swallowing.number(); });
  const auto hosts = cluster_.data_dir_of(here()) / "hosts";
  std::ofstream(hosts) << "127.0.0.1 n0\n" << support::own_loopback() << " n0\n";
  const auto marked = support::run_command(
      {"unshare", "--mount", "sh", "-ec", "mount --bind \"$1\" /etc/hosts; shift; exec \"$@\"", "sh", hosts,
       SPOOR, "--url", "http://n0:" + std::to_string(swallowing.number()), "mark", "--timeout", "60", "a"});
  EXPECT_EQ(marked.code, 0) << marked.err;
}

TEST_F(DaemonUrlTest, Mark_AbsolutePath_IsLookedUpOnTheDrivesOfTheDaemon) {
  EXPECT_EQ(at_the_other({"mark", there().drives[0] / "photos/x"}).code, 0);
  const std::string path = here().drives[0] / "photos/x";
  const auto refused = at_the_other({"mark", path});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("not marked: '" + path + "' is on none of the drives"));

  const auto mixed = at_the_other({"mark", "--json", "first", path, "second", path, "third"});
  EXPECT_EQ(mixed.code, 1);
  EXPECT_THAT(mixed.out, HasSubstr(R"("marked":3,"ignored":0,"refused":2)")) << "the others are not held up";
}

}  // namespace
}  // namespace spoor::cluster
