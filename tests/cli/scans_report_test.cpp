#include "cli/scan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spoor::cli {
namespace {

using testing::HasSubstr;

scanner::ScanRecord incremental() {
  scanner::ScanRecord scan;
  scan.id = 12;
  scan.finished_at = base::WallTime(std::chrono::seconds(3));
  scan.figures = {.dirs_walked = 1000,
                  .dirs_skipped = 2000,
                  .dirs_changed = 600,
                  .dirs_new = 300,
                  .dirs_deleted = 4,
                  .audited = 9,
                  .missed = 7};
  scan.files = 5;
  scan.bytes = 2048;
  scan.errors = 6;
  return scan;
}

TEST(ScansTextTest, EachScan_HasOneLine) {
  scanner::ScanRecord full = incremental();
  full.id = 1;
  full.walked_everything = true;
  full.reason = "it is the first scan";
  EXPECT_EQ(scans_text({incremental(), full}),
            "scan  started                took  mode         walked  skipped  changed  new  deleted  errors  "
            "missed  false positives  files     size  remarks\n"
            "12    1970-01-01T00:00:00Z  3.0 s  incremental   1,000    2,000      600  300        4       6  "
            "     7    100 (10.00 %)      5  2.0 KiB\n"
            "1     1970-01-01T00:00:00Z  3.0 s  full          1,000    2,000      600  300        4       6  "
            "     7                -      5  2.0 KiB  it is the first scan\n");
}

TEST(ScansTextTest, PartialScan_IsShownBesideItsReason) {
  scanner::ScanRecord scan = incremental();
  scan.partial = true;
  EXPECT_THAT(scans_text({scan}), HasSubstr("  partial\n"));
  scan.walked_everything = true;
  scan.reason = "n2\x1b was never read before";
  EXPECT_THAT(scans_text({scan}), HasSubstr("  partial; n2\\x1b was never read before\n"));
}

TEST(ScansTextTest, NoScans_PrintsNoScanIsKnown) { EXPECT_EQ(scans_text({}), "no scan is known\n"); }

}  // namespace
}  // namespace spoor::cli
