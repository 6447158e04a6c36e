#include "peer/member_roll_file.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <string>

#include "tests/fakes/memory_file_system.h"

namespace spoor::peer {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;

const MemberRoll some{
    {{"dns x:7420",
      {{"http://10.0.0.1:7420", "http://[fd00::1]:7420"}, {{"http://10.0.0.2:7420", hours(7)}}}},
     {"etcd", {{"unix:/run/s.sock"}, {}}}},
    base::WallTime(hours(24 * 20'000))};

class MemberRollFileTest : public ::testing::Test {
 protected:
  MemberRollFileTest() { files_.make_directory("/data"); }

  LoadedRoll load() { return load_roll(files_, "/data"); }

  fakes::MemoryFileSystem files_;
};

TEST_F(MemberRollFileTest, ComesBackAsItWas) {
  ASSERT_TRUE(store_roll(files_, "/data", some, false));
  files_.crash();
  const auto loaded = load();
  EXPECT_EQ(loaded.problem, "");
  EXPECT_EQ(loaded.roll, some);
}

TEST_F(MemberRollFileTest, NoFileIsNobody) {
  EXPECT_EQ(load().problem, "");
  EXPECT_EQ(load().roll, MemberRoll());
}

TEST_F(MemberRollFileTest, WhatIsDamagedIsAProblemAndNotNobody) {
  for (
      const std::string bad :
      {"",
       "{",
       "[]",
       "{}",
       R"({"version":2,"sources":{}})",
       R"({"version":1})",
       R"({"version":1,"sources":[]})",
       R"({"version":1,"sources":{"x":{}}})",
       R"({"version":1,"sources":{"x":{"listed":[],"lingering":[]}}})",
       R"({"version":1,"sources":{"x":{"listed":{},"lingering":{}}}})",
       R"({"version":1,"sources":{"x":{"listed":["nobody"],"lingering":{}}}})",
       R"({"version":1,"sources":{"x":{"listed":[7],"lingering":{}}}})",
       R"({"version":1,"sources":{"x":{"listed":[],"lingering":{"nobody":{"silent_ms":1}}}}})",
       R"({"version":1,"sources":{"x":{"listed":[],"lingering":{"http://a:1":{"silent_ms":-1}}}}})",
       R"({"version":1,"sources":{"x":{"listed":[],"lingering":{"http://a:1":{"silent_ms":18446744073709551615}}}}})",
       R"({"version":1,"sources":{"x":{"listed":[],"lingering":{"http://a:1":{"silent_ms":"long"}}}}})",
       R"({"version":1,"sources":{"x":{"listed":[],"lingering":{"http://a:1":{}}}}})",
       R"({"version":1,"sources":{"x":{"listed":[],"lingering":{"http://a:1":1730000000000}}}})",
       R"({"version":1,"sources":{},"asked_at":-1})",
       R"({"version":1,"sources":{},"asked_at":null})",
       R"({"version":1,"sources":{},"asked_at":18446744073709551615})"}) {
    files_.put("/data/members.json", bad);
    const auto loaded = load();
    EXPECT_TRUE(loaded.is_damaged) << bad;
    EXPECT_THAT(loaded.problem, HasSubstr("/data/members.json is corrupt")) << bad;
  }
}

TEST_F(MemberRollFileTest, WhatIsDamagedIsKeptAside) {
  files_.put("/data/members.json", "{");
  ASSERT_TRUE(store_roll(files_, "/data", some, true));
  EXPECT_EQ(files_.content("/data/members.json.corrupt"), "{");
  EXPECT_EQ(load().roll, some);
}

TEST_F(MemberRollFileTest, WhatCannotBeReadIsAProblemAndNotDamaged) {
  ASSERT_TRUE(store_roll(files_, "/data", some, false));
  files_.fail_below("/data/members.json", EIO);
  const auto loaded = load();
  EXPECT_FALSE(loaded.is_damaged);
  EXPECT_THAT(loaded.problem, HasSubstr("/data/members.json"));
}

TEST_F(MemberRollFileTest, ItsMembersMayNeverHaveBeenAsked) {
  auto never_asked = some;
  never_asked.asked_at.reset();
  ASSERT_TRUE(store_roll(files_, "/data", never_asked, false));
  EXPECT_EQ(load().roll, never_asked);
}

TEST_F(MemberRollFileTest, WhatCouldNotBeReadAgainIsNotWritten) {
  ASSERT_TRUE(store_roll(files_, "/data", some, false));
  const std::size_t size = files_.content("/data/members.json").value().size();
  EXPECT_TRUE(store_roll(files_, "/data", some, false, size));
  const auto stored = store_roll(files_, "/data", some, false, size - 1);
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, std::errc::file_too_large);
  EXPECT_EQ(load().roll, some);
}

TEST_F(MemberRollFileTest, AFailedWriteLeavesTheOldOne) {
  ASSERT_TRUE(store_roll(files_, "/data", some, false));
  files_.fill("/data");
  EXPECT_FALSE(store_roll(files_, "/data", {}, false));
  files_.heal("/data");
  EXPECT_EQ(load().roll, some);
}

}  // namespace
}  // namespace spoor::peer
