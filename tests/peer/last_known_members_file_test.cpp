#include "peer/membership/last_known_members_file.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/fakes/memory_file_system.h"
#include "tests/support/json_mutations.h"

namespace spoor::peer {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;

const LastKnownMembers some{
    {{"dns x:7420",
      {{"http://10.0.0.1:7420", "http://[fd00::1]:7420"}, {{"http://10.0.0.2:7420", hours(7)}}}},
     {"etcd", {{"unix:/run/s.sock"}, {}}}},
    base::WallTime(hours(24 * 20'000))};

class LastKnownMembersFileTest : public ::testing::Test {
 protected:
  LastKnownMembersFileTest() { files_.make_directory("/data"); }

  LoadedMembers load() { return load_last_known_members(files_, "/data"); }

  fakes::MemoryFileSystem files_;
};

TEST_F(LastKnownMembersFileTest, StoreAndLoad_AfterCrash_KeepsMembers) {
  ASSERT_TRUE(store_last_known_members(files_, "/data", some, false));
  files_.crash();
  const auto loaded = load();
  EXPECT_EQ(loaded.problem, "");
  EXPECT_EQ(loaded.last_known, some);
}

TEST_F(LastKnownMembersFileTest, NoFile_LoadsNoMembers) {
  EXPECT_EQ(load().problem, "");
  EXPECT_EQ(load().last_known, LastKnownMembers());
}

TEST_F(LastKnownMembersFileTest, CorruptFile_IsAnError) {
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

TEST_F(LastKnownMembersFileTest, AnyMemberMissingOrOfAnotherType_IsReadOrCorrupt) {
  using nlohmann::json;
  ASSERT_TRUE(store_last_known_members(files_, "/data", some, false));
  const auto whole = json::parse(files_.content("/data/members.json").value());
  support::for_each_mutation<json>(whole, [&](const json& mutated, const std::string& what) {
    files_.put("/data/members.json", mutated.dump());
    EXPECT_EQ(load().problem.empty(), !load().is_damaged) << what;
  });
}

TEST_F(LastKnownMembersFileTest, CorruptFile_IsKeptAside) {
  files_.put("/data/members.json", "{");
  ASSERT_TRUE(store_last_known_members(files_, "/data", some, true));
  EXPECT_EQ(files_.content("/data/members.json.corrupt"), "{");
  EXPECT_EQ(load().last_known, some);
}

TEST_F(LastKnownMembersFileTest, UnreadableFile_IsAnErrorButNotCorrupt) {
  ASSERT_TRUE(store_last_known_members(files_, "/data", some, false));
  files_.fail_below("/data/members.json", EIO);
  const auto loaded = load();
  EXPECT_FALSE(loaded.is_damaged);
  EXPECT_THAT(loaded.problem, HasSubstr("/data/members.json"));
}

TEST_F(LastKnownMembersFileTest, NeverAskedMembers_StoreAndLoad_AreUnchanged) {
  auto never_asked = some;
  never_asked.asked_at.reset();
  ASSERT_TRUE(store_last_known_members(files_, "/data", never_asked, false));
  EXPECT_EQ(load().last_known, never_asked);
}

TEST_F(LastKnownMembersFileTest, FileOverSizeLimit_IsNotWritten) {
  ASSERT_TRUE(store_last_known_members(files_, "/data", some, false));
  const std::size_t size = files_.content("/data/members.json").value().size();
  EXPECT_TRUE(store_last_known_members(files_, "/data", some, false, size));
  const auto stored = store_last_known_members(files_, "/data", some, false, size - 1);
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, std::errc::file_too_large);
  EXPECT_EQ(load().last_known, some);
}

TEST_F(LastKnownMembersFileTest, FailedWrite_KeepsOldFile) {
  ASSERT_TRUE(store_last_known_members(files_, "/data", some, false));
  files_.fill("/data");
  EXPECT_FALSE(store_last_known_members(files_, "/data", {}, false));
  files_.heal("/data");
  EXPECT_EQ(load().last_known, some);
}

}  // namespace
}  // namespace spoor::peer
