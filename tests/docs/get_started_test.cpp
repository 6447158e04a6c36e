// The blocks of docs/get-started.md and of README.md, run as they stand there.
#include <gtest/gtest.h>

#include "tests/docs/pages.h"
#include "tests/support/loopback.h"
#include "tests/support/temp_directory.h"

namespace spoor::docs {
namespace {

// How many blocks show what they print.
std::size_t expect_what_the_page_shows(const std::vector<BlockRun>& runs) {
  std::size_t promises = 0;
  for (const BlockRun& run : runs) {
    EXPECT_EQ(run.code, 0) << run.command << run.printed;
    EXPECT_EQ(lasting(run.printed), lasting(run.promised)) << run.command;
    if (!run.promised.empty()) ++promises;
  }
  return promises;
}

TEST(GetStartedTest, Blocks_PrintWhatThePageShows) {
  const support::TempDirectory home;
  const auto runs = run_page(DOCS "/get-started.md", home.path(), {{"127.0.0.1", support::own_loopback()}});
  EXPECT_GE(expect_what_the_page_shows(runs), 7U);
  EXPECT_TRUE(std::filesystem::is_empty(home.path())) << "the last block cleans up";
}

TEST(ReadmeTest, Session_PrintsWhatThePageShows) {
  const support::TempDirectory home;
  EXPECT_EQ(expect_what_the_page_shows(run_page(DOCS "/../README.md", home.path())), 1U);
}

}  // namespace
}  // namespace spoor::docs
