// A scan.db that is damaged while nobody looks.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/faults/fault_fixture.h"

namespace spoor::faults {
namespace {

using ::testing::HasSubstr;

class ScanDatabaseTest : public FaultTest {
 protected:
  ScanDatabaseTest() {
    for (int number = 0; number < 300; ++number) {
      const auto path = drive() / "tree" / ("directory-" + std::to_string(number));
      fs::create_directories(path);
      std::ofstream(path / "file") << std::string(100, 'x');
    }
  }

  fs::path data(const char* name) const {
    return config_["node"]["data_dir"].get<std::string>() + "/" + name;
  }

  // In every page but the first: in numbers, names, and where they begin.
  void damage() const {
    const auto size = fs::file_size(data("scan.db"));
    std::fstream file(data("scan.db"), std::ios::in | std::ios::out | std::ios::binary);
    for (std::uintmax_t page = 4096; page < size; page += 4096) {
      file.seekp(static_cast<std::streamoff>(page) + 3000);
      file << "12345678";
    }
  }
};

TEST_F(ScanDatabaseTest, DamagedDatabase_IsReportedAndNextScanRebuildsIt) {
  start();
  spoor_json({"scan"});
  ASSERT_EQ(spoor_json({"usage"})["files"], 300);
  damage();

  const auto usage = spoor({"usage", "tree"});
  EXPECT_EQ(usage.code, 1);
  EXPECT_EQ(usage.out, "");
  EXPECT_THAT(usage.err, HasSubstr("scan.db is damaged"));
  EXPECT_THAT(usage.err, HasSubstr("the next 'spoor scan' rebuilds it"));
  EXPECT_EQ(request("GET", "/v1/usage?path=tree").status, 500U);

  const auto scan = spoor_json({"scan"});
  EXPECT_EQ(scan["mode"], "full");
  EXPECT_THAT(scan["reason"].get<std::string>(), HasSubstr("scan.db is damaged"));
  EXPECT_THAT(scan["reason"].get<std::string>(),
              HasSubstr("it was set aside as " + data("scan.db.corrupt").native()));
  EXPECT_TRUE(fs::exists(data("scan.db.corrupt")));
  EXPECT_EQ(spoor_json({"usage"})["files"], 300);
  EXPECT_EQ(request("GET", "/v1/usage?path=tree").status, 200U);
  EXPECT_EQ(spoor_json({"scan"})["mode"], "incremental");
}

// Nobody asked before the scan, which meets the damage half-way.
TEST_F(ScanDatabaseTest, DamagedDatabase_FoundDuringAScan_ContinuesAsFullScan) {
  start();
  spoor_json({"scan"});
  damage();
  ASSERT_EQ(spoor({"mark", "--kind", "tree", "tree"}).code, 0);
  const auto scan = spoor({"scan"});
  EXPECT_EQ(scan.code, 0) << scan.err;
  EXPECT_THAT(scan.out, HasSubstr("scan.db is damaged"));
  EXPECT_EQ(spoor_json({"usage"})["files"], 300);
  EXPECT_EQ(spoor({"scan", "--rebuild", "--dry-run"}).code, 2);
}

}  // namespace
}  // namespace spoor::faults
