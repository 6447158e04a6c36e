// What spoor-watch needs, and what --check reports of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/watch/watch_fixture.h"

namespace spoor::watch {
namespace {

using testing::HasSubstr;

class PrivilegesTest : public WatchTest {
 protected:
  void SetUp() override {
    mount(FileSystem::tmpfs);
    if (!IsSkipped()) node_ = std::make_unique<WatchedNode>(disk().path());
  }

  // root keeps all other capabilities.
  static std::vector<std::string> without(const std::string& capability) {
    return {"setpriv", "--bounding-set", "-" + capability, "--inh-caps", "-" + capability};
  }
};

TEST_F(PrivilegesTest, Check_WithAllCapabilities_Succeeds) {
  const auto result = node().run_watch({"--check"});
  EXPECT_EQ(result.code, 0) << result.err;
}

TEST_F(PrivilegesTest, Check_WithoutACapability_NamesIt) {
  for (const auto& [capability, name] :
       {std::pair("sys_admin", "CAP_SYS_ADMIN"), std::pair("dac_read_search", "CAP_DAC_READ_SEARCH")}) {
    const auto result = node().run_watch({"--check"}, without(capability));
    EXPECT_NE(result.code, 0);
    EXPECT_THAT(result.out + result.err, HasSubstr(name));
  }
}

// The kernel limits the queue where its limit suffices; else a hang would hold any memory.
TEST_F(PrivilegesTest, Queue_HasALimitWhereThatOfTheMachineSuffices) {
  constexpr unsigned unlimited = 0x10;  // FAN_UNLIMITED_QUEUE
  std::uint64_t limit = 0;
  std::ifstream("/proc/sys/fs/fanotify/max_queued_events") >> limit;
  node().start_daemon();
  node().start_watch();
  const auto info = support::run_command(
      {"sh", "-c",
       "cat /proc/" + std::to_string(node().watch().pid()) + "/fdinfo/* | grep '^fanotify flags:'"});
  const auto flags = std::stoul(info.out.substr(info.out.find(':') + 1), nullptr, 16);
  EXPECT_EQ((flags & unlimited) != 0, limit < 131'072) << info.out;
}

TEST_F(PrivilegesTest, Version_NeedsNothing) {
  const auto result = node().run_watch({"--version"}, without("sys_admin"));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("spoor-watch"));
}

}  // namespace
}  // namespace spoor::watch
