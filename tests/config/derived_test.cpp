#include "config/derived.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/config/support.h"
#include "tests/support/listening_socket.h"
#include "tests/support/temp_directory.h"

namespace spoor::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OwnEndpointTest : public testing::Test {
 protected:
  OwnEndpointTest() {
    config_.listen = {{.address = "0.0.0.0"}, {.unix_path = path_}};
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
  config_.listen = {Listener{.port = 0}};
  EXPECT_FALSE(own_endpoint(config_));
}

// Scans of others expect a node until its silence is longer than the shortest `peers.forget_after`.
TEST(KnownForTest, NodeThatNoSourceLists_IsKnownForHalfOfForgetAfter) {
  Config::Peers peers;
  EXPECT_EQ(known_for(peers), std::chrono::nanoseconds::max()) << "peers.static alone";
  peers.dns = {{"a.b", 1, false}};
  EXPECT_EQ(known_for(peers), std::chrono::hours(12));
  peers.dns.clear();
  peers.etcd.emplace();
  peers.forget_after = std::chrono::minutes(3);
  EXPECT_EQ(known_for(peers), std::chrono::minutes(2)) << "at least";
}

TEST(MembersDigestTest, EachSettingOfMembers_ChangesIt) {
  const std::vector<std::vector<std::string>> settings = {
      {},
      {R"(peers.static=["http://a"])"},
      {R"(peers.dns=["a"])"},
      {R"(peers.dns_servers=["10.0.0.1"])"},
      {"peers.dns_tls=true"},
      {R"(peers.etcd={"endpoints":["http://a"],"url":"http://b"})"},
      {R"(peers.etcd={"endpoints":["http://a"],"url":"http://b","prefix":"c"})"}};
  std::set<std::uint64_t> digests;
  for (const auto& each : settings) digests.insert(members_digest(load_minimal(each).value().peers));
  EXPECT_EQ(digests.size(), settings.size());
  EXPECT_TRUE(digests.contains(members_digest(load_minimal({"peers.timeout=1s"}).value().peers)));
}

class OverlapTest : public testing::Test {
 protected:
  static std::vector<std::string> overlaps(std::vector<std::filesystem::path> drives) {
    Config config;
    config.drives = std::move(drives);
    return find_drive_overlaps(config);
  }

  const support::TempDirectory directory_;
};

TEST_F(OverlapTest, DrivesThatAreOneDirectory_AreFoundThroughSymlinks) {
  std::filesystem::create_directories(directory_ / "disk/inner");
  std::filesystem::create_directory_symlink(directory_ / "disk", directory_ / "link");
  EXPECT_THAT(
      overlaps({directory_ / "disk", directory_ / "link", directory_ / "link/inner", directory_ / "missing"}),
      ElementsAre(AllOf(HasSubstr("drives: "), HasSubstr("link is the same")), HasSubstr("inner is inside")));
}

TEST_F(OverlapTest, LongPaths_AreNamedWithWhatToDo) {
  const auto disk = directory_ / std::string(200, 'd');
  std::filesystem::create_directory(disk);
  std::filesystem::create_directory_symlink(disk, directory_ / "link");
  EXPECT_THAT(overlaps({directory_ / "link", disk}),
              ElementsAre(AllOf(HasSubstr(disk.native()), HasSubstr((directory_ / "link").native()),
                                HasSubstr("remove one of the two"))));
}

}  // namespace
}  // namespace spoor::config
