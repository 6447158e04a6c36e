#include "base/clock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/temp_directory.h"

namespace spoor::base {
namespace {

WallTime mtime_of(const std::filesystem::path& file) {
  struct stat status{};
  EXPECT_EQ(::stat(file.c_str(), &status), 0);
  return WallTime(std::chrono::seconds(status.st_mtim.tv_sec) +
                  std::chrono::nanoseconds(status.st_mtim.tv_nsec));
}

// Of a clock that were ahead, one in some hundred would be.
TEST(FileTimeClockTest, FileWrittenLater_HasNoEarlierMtime) {
  const support::TempDirectory directory;
  const FileTimeClock clock;
  for (int i = 0; i < 2'000; ++i) {
    const WallTime before = clock.wall_now();
    std::ofstream(directory / "file") << i;
    ASSERT_LE(before, mtime_of(directory / "file"));
  }
}

}  // namespace
}  // namespace spoor::base
