#include "scanner/scan.h"

#include <gtest/gtest.h>

#include "scanner/errors.h"
#include "tests/support/temp_directory.h"

namespace spoor::scanner {
namespace {

TEST(ScanLockTest, ConcurrentScan_IsRefused) {
  const support::TempDirectory data;
  {
    const auto first = lock_scan(data.path());
    ASSERT_TRUE(first) << first.error().message;
    const auto second = lock_scan(data.path());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Errc::scan_running);
    EXPECT_NE(second.error().message.find("scan.lock"), std::string::npos);
  }
  EXPECT_TRUE(lock_scan(data.path())) << "the end of a scan frees the lock";
}

TEST(ScanLockTest, MissingDirectory_ReturnsNotFound) {
  const auto lock = lock_scan("/nonexistent/spoor");
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, std::errc::no_such_file_or_directory);
}

}  // namespace
}  // namespace spoor::scanner
