// The blocks of docs/tutorial.md, run as they stand there.
#include <gtest/gtest.h>

#include "tests/docs/pages.h"
#include "tests/support/loopback.h"
#include "tests/support/temp_directory.h"

namespace spoor::docs {
namespace {

TEST(TutorialTest, Blocks_PrintWhatThePageShows) {
  const support::TempDirectory home;
  const auto runs = run_page(DOCS "/tutorial.md", home.path(), {{"127.0.0.1", support::own_loopback()}});
  std::size_t promises = 0;
  for (const BlockRun& run : runs) {
    EXPECT_EQ(run.code, 0) << run.command << run.printed;
    EXPECT_EQ(lasting(run.printed), lasting(run.promised)) << run.command;
    if (!run.promised.empty()) ++promises;
  }
  EXPECT_GE(promises, 8U);
  EXPECT_TRUE(std::filesystem::is_empty(home.path())) << "the last block cleans up";
}

}  // namespace
}  // namespace spoor::docs
